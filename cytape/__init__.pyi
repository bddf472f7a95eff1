"""The names of the package, with those of `cytape.graph` that no other module has."""

from cytape import autodiff as autodiff
from cytape import autograd as autograd
from cytape import core as core
from cytape import errors as errors
from cytape import graph as graph
from cytape import nn as nn
from cytape import numpy as numpy
from cytape import ops as ops
from cytape import optimizers as optimizers
from cytape import scipy as scipy
from cytape import tensor as tensor
from cytape import testing as testing
from cytape.autodiff import *
from cytape.graph import AggregationMethod as AggregationMethod
from cytape.graph import ConcreteFunction as ConcreteFunction
from cytape.graph import Graph as Graph
from cytape.graph import Operation as Operation
from cytape.graph import Session as Session
from cytape.graph import TensorArray as TensorArray
from cytape.graph import case as case
from cytape.graph import colocate_with as colocate_with
from cytape.graph import cond as cond
from cytape.graph import control_dependencies as control_dependencies
from cytape.graph import device as device
from cytape.graph import foldl as foldl
from cytape.graph import foldr as foldr
from cytape.graph import function as function
from cytape.graph import get_default_graph as get_default_graph
from cytape.graph import get_variable as get_variable
from cytape.graph import gradients as gradients
from cytape.graph import group as group
from cytape.graph import hessians as hessians
from cytape.graph import map_fn as map_fn
from cytape.graph import name_scope as name_scope
from cytape.graph import no_op as no_op
from cytape.graph import placeholder as placeholder
from cytape.graph import saved_values as saved_values
from cytape.graph import scan as scan
from cytape.graph import switch_case as switch_case
from cytape.graph import vmap as vmap
from cytape.graph import while_loop as while_loop
from cytape.ops import *
from cytape.profiling import Profile as Profile
from cytape.profiling import profile as profile
from cytape.tensor import *

__version__: str
