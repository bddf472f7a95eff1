cimport numpy as cnp

from .ufunc_loops cimport Loop, kernel_of

import operator
from weakref import proxy

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

cnp.import_array()

WIDEN = "widen"    # a step that turns booleans into numbers
SELECT = "select"  # a step that is numpy.where

partials_of = {}   # ufunc -> one partial derivative per input, as ops declare them


class NotAProgram(Exception):
    """Raised if a partial derivative does something that kernels cannot do."""


class Symbol(NDArrayOperatorsMixin):
    """Stand-in for an array while a partial derivative is traced."""

    def __init__(self, tracer, register, is_bool=False):
        self.tracer = proxy(tracer)  # a proxy, since the tracer owns its symbols
        self.register = register
        self.is_bool = is_bool

    def __array_ufunc__(self, ufunc, method, *inputs, **arguments):
        if method != "__call__" or arguments:
            raise NotAProgram
        return self.tracer.call(ufunc, inputs)

    def __array_function__(self, function, types, args, arguments):
        if function is not np.where or len(args) != 3 or arguments:
            raise NotAProgram
        return self.tracer.select(*args)

    def __getattr__(self, name):
        raise NotAProgram

    def __bool__(self):
        raise NotAProgram  # the branch depends on the data


class Tracer:
    """Collects the steps of one program."""

    def __init__(self):
        self.symbols = [Symbol(self, register) for register in range(N_OPERANDS)]
        self.steps = []      # (ufunc, SELECT or WIDEN, input symbols, result symbol)
        self.constants = {}  # register -> value
        self.calls = {}      # register -> (partials, inputs) of the op that returned its symbol

    def new_symbol(self, is_bool=False):
        symbol = Symbol(self, len(self.symbols), is_bool)
        self.symbols.append(symbol)
        return symbol

    def constant(self, value):
        if isinstance(value, complex) or np.ndim(value):
            raise NotAProgram
        value = float(value)
        for register, known in self.constants.items():
            if known.hex() == value.hex():  # 0.0 == -0.0
                return self.symbols[register]
        symbol = self.new_symbol()
        self.constants[symbol.register] = value
        return symbol

    def number(self, x):
        """Return the symbol of an operand, widened if it is boolean."""
        symbol = x if isinstance(x, Symbol) else self.constant(x)
        return self.add_step(WIDEN, [symbol]) if symbol.is_bool else symbol

    def select(self, condition, x, y):
        if not isinstance(condition, Symbol) or not condition.is_bool:
            raise NotAProgram
        return self.add_step(SELECT, [condition, self.number(x), self.number(y)])

    def add_step(self, kind, symbols, is_bool=False):
        for known_kind, known_symbols, result in self.steps:
            if known_kind is kind and all(map(operator.is_, known_symbols, symbols)):
                return result
        result = self.new_symbol(is_bool)
        self.steps.append((kind, symbols, result))
        return result

    def call(self, ufunc, inputs):
        symbols = [x if isinstance(x, Symbol) else self.constant(x) for x in inputs]
        if len(symbols) > 3:
            raise NotAProgram
        all_bool = all(symbol.is_bool for symbol in symbols)
        loop_type = cnp.NPY_BOOL if all_bool else cnp.NPY_DOUBLE
        if has_loop(ufunc, loop_type) is None:
            if not all_bool:
                raise NotAProgram
            all_bool, loop_type = False, cnp.NPY_DOUBLE
        if not all_bool:
            symbols = list(map(self.number, symbols))
        out_type = has_loop(ufunc, loop_type)
        if out_type != cnp.NPY_BOOL and out_type != cnp.NPY_DOUBLE:
            raise NotAProgram
        return self.add_step(ufunc, symbols, is_bool=out_type == cnp.NPY_BOOL)

    # ---- derivatives

    def times(self, symbol, partial):
        """Multiply by a partial derivative, as `PartialsOp` does on arrays."""
        if callable(partial):
            return partial(symbol)
        if not isinstance(partial, Symbol) and partial == 1:
            return symbol
        if isinstance(partial, Symbol) and partial.is_bool:
            return self.select(partial, symbol, 0)
        if isinstance(partial, Symbol) and self.constants.get(symbol.register) == 1:
            return partial
        return self.call(np.multiply, (symbol, partial))

    def tangent_of_step(self, kind, inputs, result, tangents):
        """Return the tangent of a step's result, None for zero; tangents go by register."""
        partials, inputs = self.calls.get(result.register, (partials_of.get(kind), inputs))
        of_inputs = [tangents.get(x.register) if isinstance(x, Symbol) else None for x in inputs]
        if kind is WIDEN or result.is_bool or all([tangent is None for tangent in of_inputs]):
            return None
        if partials is not None:
            return self.tangent(partials, result, inputs, of_inputs)
        if kind is SELECT:
            _, x, y = [0 if tangent is None else tangent for tangent in of_inputs]
            return self.select(inputs[0], x, y)
        raise NotAProgram

    def tangent(self, partials, output, inputs, tangents):
        """Sum the tangents (None: zero) of an op's inputs, times the partials."""
        total = None
        for partial, tangent in zip(partials, tangents):
            if partial is not None and tangent is not None:
                term = self.times(tangent, partial(output, *inputs))
                total = term if total is None else self.call(np.add, (total, term))
        return total


def call_of_op(result, partials, inputs):
    """Return the result of an op's function, with the tangents of the op, not of its steps."""
    if isinstance(result, Symbol):
        result.tracer.calls[result.register] = partials, inputs
    return result


def has_loop(ufunc, int type_num):
    """Return the output type of a ufunc's loop for inputs of a type; None without such a loop."""
    cdef Loop loop = kernel_of(ufunc).loops[type_num]
    return None if loop.function == NULL or ufunc.nout != 1 else loop.out_type


def declare_partials(ufunc, partials, instead_of=None):
    """Register the partials of a ufunc, for the tangents of steps that call it.

    The first registration counts, until it is replaced: `instead_of` are its partials.
    """
    if instead_of is not None and partials_of.get(ufunc) is instead_of:
        partials_of[ufunc] = partials
    partials_of.setdefault(ufunc, partials)
