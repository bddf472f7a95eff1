cimport cython
from cytape.ops.calls.dispatch cimport value_of
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport new_tensor
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t

from cytape.graph.passes.early_sums cimport LARGE

from .plan cimport tracer
from .value_op cimport check_fed

from cytape.graph.passes import optimise
from cytape.graph.passes.early_sums import with_sums_early
from cytape.graph.passes.repeats import splits_fused, without_repeats
from cytape.graph.run.interpreter import needed_nodes

cdef enum:
    MOST_PLANS = 64        # of one subgraph, for different shapes
    MOST_BYTES = 1 << 28   # of all plans of a subgraph, if there are several

cdef long long n_uses = 0  # of all plans: a clock


@cython.final
cdef class Executable:
    """A subgraph that can run, with its plans.

    Optimisation pays from the second run on. Subgraphs that need 4 MiB, or have control inputs, as
    with recomputation, are optimised before the first run, so that every run takes the same memory.
    If extents of feeds are unknown there is one plan for each combination of specs that is fed,
    since plans know all shapes; the least recently used ones are dropped.

    Parameters
    ----------
    subgraph : Subgraph

    Examples
    --------
    >>> from cytape.graph import Graph
    >>> from cytape.graph.model.subgraph import Subgraph
    >>> graph = Graph()
    >>> x = graph.placeholder("float64", (None,))
    >>> y = (x * x).sum()
    >>> executable = Executable(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),)))
    >>> executable.run([[1.0, 2.0]]), executable.run([[3.0]])
    ([Tensor(5.)], [Tensor(9.)])
    """

    def __init__(self, subgraph):
        cdef SymbolicGraph graph = subgraph.graph
        cdef int32_t symbol
        self.subgraph = subgraph
        for symbol in subgraph.feeds:
            if not (<Spec>graph.symbols[graph.valid_symbol(symbol)].spec).known:
                self.plans = {}
                break
        self.at_once = graph.has_control_inputs and waits(subgraph)

    @property
    def n_plans(self) -> int:
        """The number of plans."""
        if self.plans is None:
            return int(self.plan is not None)
        return len(self.plans)

    @property
    def nbytes(self) -> int:
        """The size of the plans, in bytes."""
        return self.size()

    cdef Py_ssize_t size(self) except -1:
        cdef Plan plan
        cdef Py_ssize_t nbytes = 0
        if self.plans is None:
            return 0 if self.plan is None else self.plan.size()
        for plan in list(self.plans.values()):
            nbytes += plan.size()
        return nbytes

    cpdef list run(self, values, trace=None):
        """Compute the fetches.

        Parameters
        ----------
        values : sequence of Tensor or array_like
            The fed values, in the order of the subgraph's feeds.
        trace : RunTrace, optional
            Gets the time and the memory that each op takes; the run is slower then.

        Raises
        ------
        GraphError
            If a placeholder is needed that is not fed, or something fed does not fit.
        """
        cdef list given = [value_of(x, False) for x in values]
        return [new_tensor(value)
                for value in self.plan_for(given).run_traced(given, trace or tracer)]

    cdef list run_values(self, list values):
        return self.plan_for(values).run_values(values)

    def plans_to_spare(self) -> list:
        """List last use, size and specs of all plans but the most recent."""
        cdef Plan plan
        if self.plans is None:
            return []
        found = sorted([((<Plan>plan).last_use, plan.nbytes, specs)
                        for specs, plan in list(self.plans.items())], key=lambda item: item[0])
        if found:
            found.pop()
        return found

    def drop(self, specs) -> None:
        """Drop the plan for some specs."""
        self.plans.pop(specs, None)

    cdef Plan next_plan(self):
        """Make the optimised plan of the next run, if all extents are known."""
        cdef Plan plan = None
        if self.plan is None and not self.at_once:
            plan = Plan(with_sums_early(self.subgraph))
        if plan is None or plan.code.peak_bytes >= LARGE:
            plan = self.plan = optimised_plan(self.subgraph)
            self.is_optimised = True
        else:
            self.plan = plan
        return plan

    cdef Plan plan_for(self, list values):
        global n_uses
        cdef Plan plan
        cdef Value value
        if self.plans is None:
            if self.is_optimised:
                return self.plan
            plan = self.next_plan()
            if self.report is not None:
                self.report()
            return plan
        specs = tuple([value.spec for value in values])
        plan = self.plans.get(specs)
        if plan is None:
            check_fed(self.subgraph.graph, tuple(self.subgraph.feeds), values)
            plan = optimised_plan(self.subgraph, specs)
            self.make_room(plan.size())
            self.plans[specs] = plan
            n_uses += 1
            plan.last_use = n_uses
            if self.report is not None:
                self.report()
            return plan
        n_uses += 1
        plan.last_use = n_uses
        return plan

    cdef int make_room(self, Py_ssize_t nbytes) except -1:
        """Drop plans to make room for a new one, the least recently used first."""
        cdef Plan plan
        kept = self.size() + nbytes
        by_use = sorted([((<Plan>plan).last_use, specs)
                         for specs, plan in list(self.plans.items())], key=lambda item: item[0])
        for _, specs in by_use:
            if len(self.plans) < MOST_PLANS and kept <= MOST_BYTES:
                break
            plan = self.plans.pop(specs, None)
            kept -= 0 if plan is None else plan.size()
        return 0


cdef Plan optimised_plan(subgraph, specs=None):
    """Make a plan with fused ops, without recomputation if that does not save memory."""
    cdef Plan plain, plan
    optimal = optimise(subgraph, specs)
    plan = Plan(optimal)
    if not splits_fused(optimal):
        return plan
    plain = Plan(optimise(without_repeats(subgraph), specs))
    return plain if plain.code.peak_bytes <= plan.code.peak_bytes else plan


def waits(subgraph) -> bool:
    """Return whether any op has control inputs."""
    graph, feeds, fetches, keep = subgraph
    return any(len(graph.control_inputs_of(node))
               for node in needed_nodes(graph, list(fetches), feeds, list(keep)))


def peak_of_runs(subgraph, specs=None) -> int:
    """Return the peak number of bytes of intermediate and fetched values in any run.

    Parameters
    ----------
    subgraph : Subgraph
    specs : sequence of Spec, optional
        Of what is fed, where the graph does not know it.

    Examples
    --------
    >>> from cytape.graph import Graph
    >>> from cytape.graph.model.subgraph import Subgraph
    >>> graph = Graph()
    >>> x = graph.placeholder("float64", (1000,))
    >>> y = x * x + 1.0
    >>> peak_of_runs(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),)))
    16000
    """
    cdef Executable executable = Executable(subgraph)
    cdef Py_ssize_t most = 0
    if executable.plans is not None:
        return optimised_plan(subgraph, specs).code.peak_bytes
    while not executable.is_optimised:
        most = max(most, executable.next_plan().code.peak_bytes)
    return most
