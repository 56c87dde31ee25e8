"""bom.py FOLDER: bom.json names every file of an unpacked package but NuGet's own, with its hash."""
import hashlib, json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
bom = json.load(open(folder / "bom.json", encoding="utf-8"))
named = {c["name"]: c["hashes"][0]["content"] for c in bom["components"] if c["type"] == "file"}
nuget = ("_rels/", "package/", "[Content_Types].xml", "bom.json")
there = {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()}
there = {n: h for n, h in there.items() if not n.startswith(nuget) and not n.endswith(".nuspec")}
assert there == named, f"bom.json differs: {sorted(set(there.items()) ^ set(named.items()))}"
assert bom["bomFormat"] == "CycloneDX" and bom["metadata"]["component"]["purl"].startswith("pkg:nuget/Pipelines.File")
