"""What `kubectl kustomize` makes of a directory, as far as this repository's manifests need it.

Names that it would give a suffix with a hash of their content keep their plain form. What a
kustomization holds beyond that is an error.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

# parsed YAML is what it is: the schemas say what must be there
Resource = dict[str, Any]

_READ = {
    *("apiVersion", "kind", "namespace", "labels", "resources", "images"),
    *("configMapGenerator", "secretGenerator", "patches"),
}
_MERGED_BY = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}
_WITHOUT_NAMESPACE = {"Namespace"}


def render(directory: Path) -> list[Resource]:
    """Return the resources of a base or an overlay."""
    kustomization = yaml.safe_load((directory / "kustomization.yaml").read_text())
    assert kustomization.keys() <= _READ, kustomization.keys() - _READ
    resources: list[Resource] = []
    for name in kustomization.get("resources", ()):
        there = directory / name
        resources += render(there) if there.is_dir() else documents(there)
    for kind, files in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
        for generator in kustomization.get(files, ()):
            _add(resources, _generated(kind, generator, directory), generator)
    for patch in kustomization.get("patches", ()):
        for change in documents(directory / patch["path"]):
            target = find(resources, change["kind"], change["metadata"]["name"])
            target.update(_merged(target, change))
    for resource in resources:
        if resource["kind"] not in _WITHOUT_NAMESPACE:
            resource["metadata"]["namespace"] = kustomization["namespace"]
        for labels in kustomization.get("labels", ()):
            assert labels.keys() == {"pairs", "includeTemplates"}
            for metadata in _labelled(resource):
                metadata["labels"] = metadata.get("labels", {}) | labels["pairs"]
        for container in containers(resource):
            for image in kustomization.get("images", ()):
                if container["image"].partition(":")[0] == image["name"]:
                    container["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"
    return resources


def documents(file: Path) -> list[Resource]:
    return list(yaml.safe_load_all(file.read_text()))


def find(resources: list[Resource], kind: str, name: str) -> Resource:
    """Return the one resource of this kind and name."""
    found = [r for r in resources if (r["kind"], r["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, f"{kind} {name}: {len(found)} of them"
    return found[0]


def pod_of(resource: Resource) -> Resource | None:
    """Return the pod's spec of what makes pods, else None."""
    template = resource.get("spec", {}).get("template")
    return None if template is None else template["spec"]


def containers(resource: Resource) -> list[Resource]:
    pod = pod_of(resource)
    return [] if pod is None else pod["containers"]


def _labelled(resource: Resource) -> Iterator[Resource]:
    yield resource["metadata"]
    if pod_of(resource) is not None:
        yield resource["spec"]["template"]["metadata"]


def _add(resources: list[Resource], made: Resource, generator: Mapping[str, Any]) -> None:
    if generator.get("behavior") == "merge":
        there = find(resources, made["kind"], made["metadata"]["name"])
        there["data"] = there["data"] | made["data"]
    else:
        resources.append(made)


def _generated(kind: str, generator: Mapping[str, Any], directory: Path) -> Resource:
    assert generator.keys() <= {"name", "behavior", "envs", "files"}
    data: dict[str, str] = {}
    for name in generator.get("envs", ()):
        for line in (directory / name).read_text().splitlines():
            if line and not line.startswith("#"):
                key, _, value = line.partition("=")
                data[key] = value
    for name in generator.get("files", ()):
        raw = (directory / name).read_bytes()
        data[Path(name).name] = base64.b64encode(raw).decode() if kind == "Secret" else raw.decode()
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": generator["name"]}, "data": data}
    return made | {"type": "Opaque"} if kind == "Secret" else made


def _merged(before: Resource, change: Resource) -> Resource:
    """Return `before` with a strategic merge patch applied."""
    after = dict(before)
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(after.get(key), dict):
            after[key] = _merged(after[key], value)
        elif isinstance(value, list) and key in _MERGED_BY and key in after:
            by = _MERGED_BY[key]
            items = {item[by]: item for item in after[key]}
            news = {item[by]: _merged(items.get(item[by], {}), item) for item in value}
            after[key] = list((news | (items | news)).values())
        else:
            after[key] = value
    return after
