"""Compare what `xnn` reads and writes of model metadata with TensorFlow Lite Support, the format's own tools.

    metadata_check.py --xnn target/release/xnn MODEL...

Each model that has metadata is read by both, field by field (strings and lists that are empty count as absent), with
its associated files byte for byte. Then `xnn metadata add` writes the metadata, as the other side prints it, into a
copy of the model, and the other side must read the same from that and accept it as it accepts its own. Prints a line
for each model; ends with 1 if anything differs.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tflite_support import metadata, metadata_schema_py_generated as schema

ENUMERATIONS = {
    ("AssociatedFileT", "type"): schema.AssociatedFileType,
    ("BoundingBoxPropertiesT", "type"): schema.BoundingBoxType,
    ("BoundingBoxPropertiesT", "coordinateType"): schema.CoordinateType,
    ("ContentT", "contentPropertiesType"): schema.ContentProperties,
    ("ImagePropertiesT", "colorSpace"): schema.ColorSpaceType,
    ("ProcessUnitT", "optionsType"): schema.ProcessUnitOptions,
    ("ScoreCalibrationOptionsT", "scoreTransformation"): schema.ScoreTransformationType,
}
# Names that are not simply the schema's in camel case.
NAMES = {"sentencePieceModel": "sentencePiece_model"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xnn", type=Path, required=True)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    arguments = parser.parse_args()
    failures = 0
    for model in arguments.models:
        content = model.read_bytes()
        if content[4:8] != b"TFL3" or not metadata.get_metadata_buffer(content):
            continue
        with tempfile.TemporaryDirectory() as folder:
            differences, fields = check(arguments.xnn, model, Path(folder))
        failures += bool(differences)
        print(f"{model.name}: {fields} fields, " + ("; ".join(differences) or "the same"))
    sys.exit(min(failures, 1))


def check(xnn, model, folder):
    theirs = read(model)
    ours = tidy(json.loads(run(xnn, "metadata", model, "--json")))
    differences = list(compare(theirs, ours))
    displayer = metadata.MetadataDisplayer.with_model_file(str(model))
    files = {name: displayer.get_associated_file_buffer(name) for name in displayer.get_packed_associated_file_list()}
    extracted = folder / "files"
    run(xnn, "metadata", model, "--extract", extracted)
    found = {path.name: path.read_bytes() for path in extracted.iterdir()}
    if found != files:
        differences.append(f"files {sorted(found)}, not {sorted(files)}")
    differences += rewrite(xnn, model, displayer, files, folder)
    return differences, count(theirs)


def rewrite(xnn, model, displayer, files, folder):
    """Writes the metadata as the displayer prints it, and lets the other side read that."""
    text, copy = folder / "metadata.json", folder / "copy.tflite"
    text.write_text(displayer.get_metadata_json())
    named = [argument for name in files for argument in ("--file", folder / "files" / name)]
    run(xnn, "metadata", "add", model, "--json", text, *named, "-o", copy)
    again = metadata.MetadataDisplayer.with_model_file(str(copy))
    theirs, written = json.loads(displayer.get_metadata_json()), json.loads(again.get_metadata_json())
    # The writer computes it, and some models lack it.
    theirs.pop("min_parser_version", None)
    written.pop("min_parser_version", None)
    yield from (f"written: {difference}" for difference in compare(theirs, written))
    for name, content in files.items():
        if again.get_associated_file_buffer(name) != content:
            yield f"written: {name} differs"
    if len(theirs.get("subgraph_metadata", [])) == 1:
        populator = metadata.MetadataPopulator.with_model_file(str(copy))
        populator.load_metadata_buffer(bytearray(metadata.get_metadata_buffer(copy.read_bytes())))
        populator.populate()


def run(xnn, *arguments):
    result = subprocess.run([str(xnn), *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {result.stderr.strip()}")
    return result.stdout


def read(model):
    buffer = metadata.get_metadata_buffer(model.read_bytes())
    return tidy(plain(schema.ModelMetadataT.InitFromPackedBuf(buffer, 0)))


def plain(value):
    """A table of the generated reader as the JSON that it stands for."""
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not hasattr(value, "__dict__"):
        return value
    kind = type(value).__name__
    return {name(field): named(kind, field, item) for field, item in vars(value).items()}


def name(field):
    return NAMES.get(field) or re.sub("([A-Z])", r"_\1", field).lower()


def named(kind, field, value):
    if (kind, field) not in ENUMERATIONS:
        return plain(value)
    names = {code: name for name, code in vars(ENUMERATIONS[kind, field]).items() if not name.startswith("_")}
    return names.get(value, value)


# The schema's defaults of fields that a table does not contain.
DEFAULTS = (None, "", [], 0, 0.0, "UNKNOWN", "NONE", "RATIO", "IDENTITY")


def tidy(value):
    """Without what says nothing, and floats as singles."""
    if isinstance(value, dict):
        return {name: tidy(item) for name, item in value.items() if item not in DEFAULTS}
    if isinstance(value, list):
        return [tidy(item) for item in value]
    if isinstance(value, float):
        return struct.unpack("f", struct.pack("f", value))[0]
    return value


def compare(theirs, ours, place=""):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for field in sorted(theirs.keys() | ours.keys()):
            yield from compare(theirs.get(field), ours.get(field), f"{place}.{field}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (a, b) in enumerate(zip(theirs, ours)):
            yield from compare(a, b, f"{place}[{index}]")
    elif theirs != ours:
        yield f"{place.lstrip('.')}: {ours!r}, not {theirs!r}"


def count(value):
    if isinstance(value, dict):
        return sum(map(count, value.values()))
    if isinstance(value, list):
        return sum(map(count, value))
    return 1


if __name__ == "__main__":
    main()
