"""Pages of the reference, written from the public names and their docstrings.

`PAGES` groups the names as users look for them. An entry is a name that a module of `HOMES`
exports, or a module, which stands for its exported names that no page lists themselves. Of a
namesake of a module of NumPy or SciPy these are the names that are not NumPy's or SciPy's objects.
conf.py calls `write`; ``tests/test_reference.py`` checks that each public name has one entry.
"""

import functools
import importlib
import inspect
import itertools
import re
import textwrap
from pathlib import Path

HOMES = ("cytape", "cytape.autodiff", "cytape.graph", "cytape.tensor", "cytape.ops")

PAGES = {  # file: title, introduction, entries
    "transforms": ("Transforms of functions", """
Each takes a function and returns a function of the same arguments: its gradient, its Jacobian, its
products with a vector, or the function of a batch.""",
        "grad value_and_grad elementwise_grad vjp jvp jacobian jacrev jacfwd batch_jacobian hessian"
        " hessian_diagonal hessian_vector_product jet vmap make_vjp make_ggnvp gradients_function"
        " val_and_grad_function implicit_grad implicit_val_and_grad"),
    "recording": ("Tapes and accumulators", """
A tape records the operations in its block, for reverse mode; an accumulator computes tangents
during the operations, which is forward mode.""",
        "GradientTape ForwardAccumulator UnconnectedGradients stop_gradient stop_recording"
        " possible_gradient_types push_forwardprop_state"),
    "tensors": ("Tensors and variables", """
A tensor has the operators, methods and attributes of an array, and its operations can be
differentiated. A variable is a tensor whose value a program replaces.""",
        "Tensor Variable constant convert_to_tensor from_dlpack IndexedSlices Spec identity"
        " identity_n add_n gather register_structure"),
    "functions": ("Traced functions and control flow", """
A traced function is recorded once as a graph and runs without Python from then on. Branches and
loops on values of tensors are functions there.""",
        "function cytape.graph.tracing.functions.Function ConcreteFunction CacheInfo cond case"
        " switch_case while_loop scan map_fn foldl foldr TensorArray"),
    "graphs": ("Graphs", """
A graph is a program of operations without values, with TensorFlow's names: placeholders, sessions,
gradients.""",
        "cytape.graph"),
    "graph_editor": ("Editing graphs", """
`cytape.graph.editor` selects, copies, reroutes and replaces operations of a graph.""",
        "cytape.graph.editor"),
    "memory": ("Memory", """
Recompute values in the backward pass instead of storing them.""",
        "checkpoint recompute_grad checkpoint_sequential checkpointed_scan checkpoint_name"
        " saved_values cytape.graph.checkpoint"),
    "profiles": ("Profiles", """
Measure the time and memory of each op in a block of a program.""",
        "profile cytape.profiling"),
    "custom": ("Derivatives of your own", """
Give a function, or an operation, the derivative that it lacks, or another one.""",
        "custom_gradient custom_jvp elementwise numpy_function record_operation register_gradient"
        " register_jvp disable_gradient OPS"),
    **{name.replace(".", "_"): (name, f"""
`cytape.{name}` has the functions of `{name}` by NumPy's names and signatures. Called with plain
arrays they return NumPy's results; with a tensor they return tensors. Names without a derivative
(dtypes, constants) are NumPy's own and are not listed.""", f"cytape.{name}")
       for name in ("numpy", "numpy.linalg", "numpy.fft", "numpy.random")},
    "nn": ("Neural networks", """
`cytape.nn` has functions of neural networks, by TensorFlow's names.""",
        "cytape.nn"),
    "optimizers": ("Optimizers", """
`cytape.optimizers` changes parameters along their gradients.""",
        "cytape.optimizers"),
    **{f"scipy_{name}": (f"scipy.{name}", f"""
``cytape.scipy.{name}`` has the names and signatures of `scipy.{name}`. Called with plain arrays the
functions return SciPy's results; with a tensor they return tensors. Names without a derivative are
SciPy's own and are not listed.""", entries)
       for name, entries in {
           "fft": "cytape.scipy.fft", "integrate": "cytape.scipy.integrate",
           "interpolate": "cytape.scipy.interpolate", "linalg": "cytape.scipy.linalg",
           "ndimage": "cytape.scipy.ndimage", "optimize": "cytape.scipy.optimize",
           "signal": "cytape.scipy.signal",
           "sparse": "cytape.scipy.sparse cytape.scipy.sparse.linalg",
           "spatial": "cytape.scipy.spatial.distance", "special": "cytape.scipy.special",
           "stats": "cytape.scipy.stats"}.items()},
    "autograd": ("Autograd's interface", """
``cytape.autograd`` has the names of autograd, for programs that were written with it.
``cytape.autograd.numpy`` and ``cytape.autograd.scipy`` have the functions of `cytape.numpy` and
``cytape.scipy``.""",
        "cytape.autograd.differential_operators cytape.autograd.extend cytape.autograd.builtins"
        " cytape.autograd.misc.fixed_points cytape.autograd.misc.flatten"
        " cytape.autograd.misc.optimizers cytape.autograd.test_util"),
    "testing": ("Checks of derivatives", """
`cytape.testing` compares derivatives with central differences.""",
        "cytape.testing"),
    "errors": ("Errors and warnings", """
Every error of cytape's own is a `CytapeError`, and one of Python's kinds, too.""",
        "cytape.errors"),
    "core": ("The core", """
`cytape.core` is a tape that knows no arrays, for libraries that have tensors of their own. Its
`.pxd` files are installed, so that a Cython module can ``cimport`` it.""",
        "cytape.core"),
}


MODULES = [entry for _, _, text in PAGES.values() for entry in text.split()
           if entry.startswith("cytape.") and not entry.rpartition(".")[2][0].isupper()]


def exported(module):
    """Return the names of a module's own objects, in the order of its `__all__`."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None)
    if module.startswith(("cytape.numpy", "cytape.scipy")):
        theirs = importlib.import_module(module.removeprefix("cytape."))
        names = sorted({*(names or ()), *dir(found), *getattr(theirs, "__all__", ())})
        names = [name for name in names
                 if getattr(found, name, None) is not getattr(theirs, name, None)
                 and not hasattr(getattr(found, name), "refuses_tensors")]
    elif names is None:
        names = [name for name in dir(found) if module == "cytape.autograd.extend"
                 or getattr(getattr(found, name), "__module__", None) == module]
    return [name for name in names
            if not name.startswith("_") and not inspect.ismodule(getattr(found, name))]


def home(name):
    """Return the full name of an entry."""
    if "." in name:
        return name
    return next(f"{module}.{name}" for module in HOMES
                if name in importlib.import_module(module).__all__)


def entries():
    """Return the full names on each page, by headings of modules."""
    listed = {id(resolve(home(name))) for _, _, text in PAGES.values() for name in text.split()
              if name not in MODULES}
    pages = {}
    for page, (_, _, text) in PAGES.items():
        sections = pages[page] = {}
        for entry in text.split():
            if entry in MODULES:
                objects = {name: resolve(f"{entry}.{name}") for name in exported(entry)}
                sections[entry] = [
                    f"{entry}.{name}" for name, found in objects.items() if id(found) not in listed]
            else:
                sections.setdefault("", []).append(home(entry))
    return pages


def resolve(full):
    """Return the object of a full name."""
    module, _, name = full.rpartition(".")
    return getattr(importlib.import_module(module), name)


def paragraphs(found):
    """Return the signature at the head of a docstring, or "", and the paragraphs after it."""
    texts = [" ".join(text.split()) for text in (found.__doc__ or "").strip().split("\n\n")]
    head = ""
    while texts and re.fullmatch(r"\w+\(.*\)( -> .*)?", texts[0]):  # SciPy's ufuncs have two
        head = texts.pop(0)
    return head[head.find("("):] if head else "", texts


def signature(found):
    """Return the signature of an op, which autodoc cannot inspect."""
    head, _ = paragraphs(found)
    if not head:
        forward = getattr(found, "forward", found)
        return str(inspect.signature(getattr(forward, "function", forward)))
    return re.sub(r"(, /)?, out=.*", r"\1)", head)  # less the arguments that all ufuncs have


def summary(found, full):
    """Return the first paragraph of a docstring, or of its namesake's in NumPy or SciPy."""
    if not callable(found) and not full.startswith("cytape.numpy"):
        return f"Data: {type(found).__name__}."
    return (paragraphs(found)[1] or paragraphs(namesake(full))[1])[0]


def namesake(full):
    """Return the function of NumPy or SciPy with the name of one of cytape's."""
    return resolve(full.removeprefix("cytape."))


def is_refused(attribute):
    """Return whether an attribute of arrays is one that tensors refuse."""
    return isinstance(attribute, property) and isinstance(attribute.fget, functools.partial)


def members(cls, listed):
    """List methods with an example and attributes with a docstring, less those of listed bases."""
    bases = [base for base in cls.__mro__[1:]
             if id(base) in listed or not base.__module__.startswith("cytape")]
    names = []
    for name in dir(cls):
        attribute = inspect.getattr_static(cls, name)
        if name.startswith("_") or is_refused(attribute) or any(
                inspect.getattr_static(base, name, None) is attribute for base in bases):
            continue
        doc = re.sub(rf"\A([\w.]+\.)?{name}(\(|: ).*", "", inspect.getdoc(getattr(cls, name)) or "")
        if "Examples\n---" in doc or doc and inspect.isdatadescriptor(attribute):
            names.append(name)
    return names


FUNCTIONS = ("cython_function_or_method", "NumpyFunction")  # which are no routines to `inspect`


def entry(full, listed):
    """Return the lines of one entry; `listed` are the ids of all objects with an entry."""
    found = resolve(full)
    if inspect.isclass(found):
        shown = members(found, listed)
        return [f".. autoclass:: {full}", f"   :members: {', '.join(shown)}" if shown else "", ""]
    if inspect.isroutine(found) or type(found).__name__ in FUNCTIONS:
        return [f".. autofunction:: {full}", ""]
    if not callable(found):
        return [f".. autodata:: {full}", "   :no-value:", ""]
    _, _, example = (found.__doc__ or "").partition("\nExamples\n--------\n")
    return [f".. py:function:: {full}{signature(found)}", "", f"   {summary(found, full)}", "",
            *textwrap.indent(example, "   ").splitlines(), ""]


def write(folder: Path):
    """Write the pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = entries()
    listed = {id(resolve(full)) for sections in pages.values()
              for full in itertools.chain(*sections.values())}
    for page, sections in pages.items():
        title, introduction, _ = PAGES[page]
        lines = [title, "=" * len(title), introduction, ""]
        for module, names in sections.items():
            if module:
                lines += [f".. py:module:: {module}", ""]
            if module and len(sections) > 1:
                lines += [module, "-" * len(module), ""]
            lines += [".. list-table::", "   :class: names", ""]
            for full in names:
                lines += [f"   * - :py:obj:`{full.rpartition('.')[2]} <{full}>`",
                          f"     - {summary(resolve(full), full)}"]
            lines += ["", *itertools.chain(*(entry(full, listed) for full in names))]
        text = "\n".join(lines)
        path = folder / f"{page}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
