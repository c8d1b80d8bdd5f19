"""Every public function and method has a docstring with an example that runs (pytest --doctest-modules runs them), and types."""
import inspect

import pytest

import ptxvm


def public():
    for name in ptxvm.__all__:
        what = getattr(ptxvm, name)
        if inspect.isfunction(what):
            yield name, what
        elif inspect.isclass(what):
            yield name, what
            for member, function in vars(what).items():
                if not member.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{member}", function


@pytest.mark.parametrize("name, what", list(public()), ids=lambda v: v if isinstance(v, str) else "")
def test_documented(name, what):
    text = inspect.getdoc(what)
    assert text and text[0].isupper()
    if inspect.isfunction(what):
        assert ">>>" in text, f"{name} has no example"
        hints = inspect.signature(what)
        assert hints.return_annotation is not inspect.Signature.empty
        for parameter in list(hints.parameters.values())[1 if "." in name else 0 :]:
            assert parameter.annotation is not inspect.Parameter.empty, f"{name}: {parameter}"


def test_the_package_is_typed():
    from importlib.resources import files

    assert (files("ptxvm") / "py.typed").is_file() and (files("ptxvm") / "_native.pyi").is_file()


def test_the_stub_has_what_the_extension_has():
    import ast
    from importlib.resources import files

    from ptxvm import _native

    tree = ast.parse((files("ptxvm") / "_native.pyi").read_text())
    classes = {node.name: {m.name for m in node.body if isinstance(m, ast.FunctionDef)} for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    there = {name for name in dir(_native) if not name.startswith("__")}
    assert there == functions | set(classes) | {"VERSION"}
    for name, methods in classes.items():
        found = {m for m in vars(getattr(_native, name)) if not m.startswith("__") and callable(vars(getattr(_native, name))[m]) or isinstance(vars(getattr(_native, name))[m], staticmethod)}
        assert methods - {"__init__"} == {m for m in found if not m.startswith("__")}, name


@pytest.mark.parametrize("name", ["python.md", "sanitizers.md"])
def test_the_examples_of_the_guide(name, tmp_path, monkeypatch, capsys):
    """Runs the Python blocks of a page in order, with the files that its other blocks are."""
    import os
    import re
    from pathlib import Path

    guide = os.environ.get("PTXVM_GUIDE")
    folder = Path(guide).parent if guide else Path(__file__).resolve().parents[2] / "docs"
    page = folder / name
    if not page.is_file():
        pytest.skip(f"docs/{name} is not here")
    monkeypatch.chdir(tmp_path)
    names, blocks = {}, re.findall(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for language, file, text in blocks:
        if file:
            (tmp_path / file).write_text(text)
        elif language == "python":
            exec(compile(text, str(page), "exec"), names)
    said = capsys.readouterr().out
    expected, least = {
        "python.md": (["expected an array of float32; found float64", "illegal_address", "ERROR SUMMARY: "], 8),
        "sanitizers.md": (["outside shared variable `a`", "14 barrier"], 2),
    }[name]
    assert all(text in said for text in expected), said
    assert sum(language == "python" and not file for language, file, _ in blocks) >= least
