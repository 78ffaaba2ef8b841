"""Model files to take apart, change and put together again."""

import json
import zipfile

import pytest

from fragility.exceptions import ModelFileError
from fragility.pipelines import load_model


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, contents, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def edit(path, change, name="schema.json"):
    """Rewrite a member of a file as JSON that `change` has been applied to."""
    contents = members(path)
    schema = json.loads(contents[name])
    contents[name] = json.dumps(change(schema) or schema)
    write(path, contents)


def refusal(path, trusted=()):
    with pytest.raises(ModelFileError) as error:
        load_model(path, trusted=trusted)
    message = str(error.value)
    assert message.startswith(f"{path.name} is not a usable model: ")
    assert "\n" not in message
    assert message.endswith(".")
    return message


def tampered(node):
    """The schema of a pipeline in which the first step's name has been replaced by a node."""

    def change(schema):
        schema["content"]["content"]["steps"]["content"][0]["content"][0] = node

    return change


def text(content):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(content),
        "is_json": True,
    }


def arguments(*contents):
    return {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [text(content) for content in contents],
    }


def called(module, name, *contents):
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": "ConstructorFromReduceNode",
        "content": arguments(*contents),
    }
