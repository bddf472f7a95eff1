"""Tools on top of the operators: flat vectors of parameters, optimizers, fixed points, graphs."""

from cytape.autograd.misc.flatten import flatten as flatten
from cytape.autograd.misc.tracers import const_graph as const_graph
