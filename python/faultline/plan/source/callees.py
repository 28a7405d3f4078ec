"""What becomes of a number that a call is given, as far as the file shows who is called.

A name alone tells nothing: `update` may be a progress bar's, a dict's, or the program's own, which makes a tensor of that size. So it is asked who is called: Python's own functions, a
module whose functions only tell, an object that such a module made, a container that the file makes, or a function of the file. Of everything else nothing is known.
"""

from __future__ import annotations

import ast

from .reader import Source

# KEEPS: a container, which has the number from then on; PERHAPS_OWN: a method that a class of the file has, of an object that may be of another.
TELLS, KEEPS, OWN, PERHAPS_OWN, UNKNOWN = "tells", "keeps", "own", "perhaps own", "unknown"

_BUILTINS = set("print repr str format isinstance exit quit type id hash len".split())
_CONTAINERS = set("list dict set tuple sorted bytearray str".split())
_MADE_CONTAINERS = {f"collections.{name}" for name in ("deque", "defaultdict", "Counter", "OrderedDict")}
_MODULES = set("logging warnings wandb mlflow json sys csv pprint pickle neptune loguru rich comet_ml".split())
_TELLERS = {"open", "tqdm.tqdm", "tqdm.trange", "tqdm.auto.tqdm", "tqdm.auto.trange", "tqdm.notebook.tqdm"}
_TELLERS |= {"torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter", "io.StringIO", "unittest.TestCase"}
_FUNCTIONS = {f"torch.{name}" for name in ("tensor", "as_tensor", "save", "isnan", "isinf", "isfinite", "isclose")}
_FUNCTIONS |= {"torch.cuda.synchronize", "math.isnan", "math.isinf", "math.isfinite", "math.isclose"}
_DEEPEST = 8


class Callees:
    def __init__(self, source: Source):
        self._source = source
        self._imported: dict[str, str] = {}
        self._bound: dict[
            str, list
        ] = {}  # names, and attributes as ".name": what they are set to; None: that is not plain
        for node in ast.walk(source.tree):
            self._note(node)

    def of(self, call: ast.Call) -> str:
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        is_own = name in self._source.functions or name in self._source.classes
        if isinstance(func, ast.Name):
            if is_own:
                return OWN
            if name in _BUILTINS and not self._is_bound(name):
                return TELLS
            return TELLS if self._only_tells(self._dotted(func)) else UNKNOWN
        if not isinstance(func, ast.Attribute):
            return UNKNOWN
        if self._only_tells(self._dotted(func)):
            return TELLS
        kind = self._kind(func.value, 0)
        if is_own:
            return PERHAPS_OWN if kind == UNKNOWN else kind
        if name == "fill_":  # PyTorch's tensors have it, of a size of their own
            return TELLS
        return UNKNOWN if kind == OWN else kind  # a method that its class has from elsewhere

    def _is_bound(self, name: str) -> bool:
        return name in self._bound or name in self._imported

    def _only_tells(self, dotted: str | None) -> bool:
        return dotted is not None and (dotted in _FUNCTIONS or dotted.partition(".")[0] in _MODULES)

    def _dotted(self, node) -> str | None:
        """ "torch.utils.tensorboard.SummaryWriter" of a name that was imported, or of Python's own."""
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value)
            return base and f"{base}.{node.attr}"
        if not isinstance(node, ast.Name) or node.id in self._bound:
            return None
        return self._imported.get(node.id, node.id)

    def _kind(self, node, depth: int) -> str:
        """Of an object whose method is called."""
        if depth > _DEEPEST:
            return UNKNOWN
        if isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant):
            return TELLS
        if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp)):
            return KEEPS
        if isinstance(node, ast.Subscript):  # what is in a container: another, or its method is not known
            return self._kind(node.value, depth + 1)
        if isinstance(node, ast.Call):
            return self._made_by(node.func, depth)
        if isinstance(node, ast.Name):
            if node.id == "self":
                return self._of_bases(node)
            return self._of_all(self._bound.get(node.id), depth)
        if isinstance(node, ast.Attribute):
            return self._of_all(self._bound.get("." + node.attr), depth)
        return UNKNOWN

    def _of_all(self, values, depth: int) -> str:
        kinds = {self._kind(value, depth + 1) for value in values or [None]}
        return kinds.pop() if len(kinds) == 1 else UNKNOWN

    def _made_by(self, func, depth: int) -> str:
        if isinstance(func, ast.Name) and func.id in self._source.classes:
            return OWN
        dotted = self._dotted(func)
        if dotted in _CONTAINERS or dotted in _MADE_CONTAINERS:
            return KEEPS
        if dotted in _TELLERS or self._only_tells(dotted):
            return TELLS
        return UNKNOWN

    def _of_bases(self, node) -> str:
        """Of `self`."""
        around = self._source.parents.get(node)
        while around is not None and not isinstance(around, ast.ClassDef):
            around = self._source.parents.get(around)
        bases = {self._dotted(base) for base in around.bases} if around is not None else set()
        return TELLS if bases and bases <= _TELLERS else OWN

    def _note(self, node) -> None:
        if isinstance(node, ast.Import):
            for one in node.names:
                self._imported[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                self._imported[one.asname or one.name] = f"{'.' * node.level}{node.module or ''}.{one.name}"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._set(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            if node.value is not None:
                self._set(node.target, node.value)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._set(node.optional_vars, node.context_expr)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._set(node.target, None)
        elif isinstance(node, ast.comprehension):
            self._set(node.target, None)
        elif isinstance(node, ast.arg):
            self._bound.setdefault(node.arg, []).append(None)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self._bound.setdefault(node.name, []).append(None)

    def _set(self, target, value) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            alike = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for at, part in enumerate(target.elts):
                self._set(part, value.elts[at] if alike else None)
        elif isinstance(target, ast.Starred):
            self._set(target.value, None)
        elif isinstance(target, (ast.Name, ast.Attribute)):
            name = target.id if isinstance(target, ast.Name) else "." + target.attr
            self._bound.setdefault(name, []).append(value)
