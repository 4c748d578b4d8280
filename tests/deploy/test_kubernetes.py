"""The Kubernetes manifests: what they say of each other, of floeberg, and to Kubernetes is true."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest
import yaml

from floeberg.server.config import CoordinatorConfig
from tests.support.certificates import loopback_certificate
from tests.support.containers import Container
from tests.support.deployment_page import PAGE, make_secrets
from tests.support.kustomize import Resource, containers, find, pod_of, render
from tests.support.waiting import wait_until

CHECKOUT = Path(__file__).parents[2]
FLAVOURS = ("base", "overlays/tls")
KUBERNETES = ("1.30", kubernetes_validate.latest_version())
# beyond draining: streams that are left are cut, coordinators told, and the server shut down
CUTTING_SECONDS = 20
# made by cert-manager, or by hand: the page says how
ELSEWHERE = {("Secret", "floeberg-tls")}
SERVICES = ("coordinator", "worker")
POD_IP = "10.1.2.3"
POD_HERE = "127.0.0.1"


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests, with the secrets that the page's own commands make."""
    there = tmp_path_factory.mktemp("checkout") / "deploy" / "kubernetes"
    ignored = shutil.ignore_patterns("secrets")
    shutil.copytree(CHECKOUT / "deploy" / "kubernetes", there, ignore=ignored)
    make_secrets("deploy/kubernetes/base", there.parents[1])
    return there


@pytest.fixture(params=FLAVOURS)
def resources(request: pytest.FixtureRequest, manifests: Path) -> list[Resource]:
    return render(manifests / request.param)


def deployments(resources: list[Resource]) -> Iterator[Resource]:
    yield from (r for r in resources if r["kind"] == "Deployment")


def labels(deployment: Resource) -> dict[str, str]:
    return deployment["spec"]["template"]["metadata"]["labels"]


def container_of(resources: list[Resource], service: str) -> Container:
    """Return what a pod of the deployment runs."""
    deployment = find(resources, "Deployment", f"floeberg-{service}")
    pod = deployment["spec"]["template"]["spec"]
    (found,) = pod["containers"]
    environment: dict[str, str] = {}
    for source in found["envFrom"]:
        environment |= find(resources, "ConfigMap", source["configMapRef"]["name"])["data"]
    for variable in found.get("env", ()):
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
        environment[variable["name"]] = POD_IP
    # the image's entrypoint, unless the pod has a command
    argv = [*found.get("command", ["floeberg"]), *found["args"]]
    expanded = [re.sub(r"\$\((\w+)\)", lambda m: environment[m[1]], part) for part in argv]
    files: dict[str, bytes] = {}
    directories = []
    for mount in found["volumeMounts"]:
        (volume,) = (v for v in pod["volumes"] if v["name"] == mount["name"])
        if "emptyDir" in volume:
            directories.append(mount["mountPath"])
        elif ("Secret", volume["secret"]["secretName"]) not in ELSEWHERE:
            secret = find(resources, "Secret", volume["secret"]["secretName"])
            for name, encoded in secret["data"].items():
                files[f"{mount['mountPath']}/{name}"] = base64.b64decode(encoded)
    return Container(expanded, environment, files, directories)


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_takes_each_resource(resources: list[Resource], version: str) -> None:
    for resource in resources:
        kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_rendering_here_is_kubectl_s(manifests: Path, flavour: str) -> None:
    made = subprocess.run(
        ["kubectl", "kustomize", str(manifests / flavour)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    without_hashes = re.sub(r"(floeberg-\w+)-[a-z0-9]{10}\b", r"\1", made)

    def order(resource: Resource) -> tuple[str, str]:
        return resource["kind"], resource["metadata"]["name"]

    theirs = sorted(yaml.safe_load_all(without_hashes), key=order)
    for secret in (r for r in theirs if r["kind"] == "Secret"):
        secret["data"] = {name: "".join(text.split()) for name, text in secret["data"].items()}
    assert sorted(render(manifests / flavour), key=order) == theirs


def test_each_selector_finds_the_pods_that_it_is_for(resources: list[Resource]) -> None:
    pods = {d["metadata"]["name"]: labels(d) for d in deployments(resources)}

    def selected(selector: dict[str, str]) -> set[str]:
        return {name for name, has in pods.items() if selector.items() <= has.items()}

    for deployment in deployments(resources):
        name = deployment["metadata"]["name"]
        assert selected(deployment["spec"]["selector"]["matchLabels"]) == {name}
        for constraint in deployment["spec"]["template"]["spec"].get(
            "topologySpreadConstraints", ()
        ):
            assert selected(constraint["labelSelector"]["matchLabels"]) == {name}
    for kind, name, deployment_name in (
        ("Service", "floeberg-coordinator", "floeberg-coordinator"),
        ("Service", "floeberg-workers", "floeberg-worker"),
    ):
        assert selected(find(resources, kind, name)["spec"]["selector"]) == {deployment_name}
    for budget in (r for r in resources if r["kind"] == "PodDisruptionBudget"):
        chosen = selected(budget["spec"]["selector"]["matchLabels"])
        assert chosen == {budget["metadata"]["name"]}
    policy = find(resources, "NetworkPolicy", "floeberg")["spec"]
    assert selected(policy["podSelector"]["matchLabels"]) == set(pods)


def test_each_name_that_a_pod_uses_is_there(resources: list[Resource]) -> None:
    there = {(r["kind"], r["metadata"]["name"]) for r in resources} | ELSEWHERE
    used = set()
    for deployment in deployments(resources):
        pod = deployment["spec"]["template"]["spec"]
        used.add(("ServiceAccount", pod["serviceAccountName"]))
        volumes = {volume["name"] for volume in pod["volumes"]}
        used |= {("Secret", v["secret"]["secretName"]) for v in pod["volumes"] if "secret" in v}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            used |= {("ConfigMap", s["configMapRef"]["name"]) for s in container["envFrom"]}

    assert used <= there
    assert {u for u in there if u[0] in ("ConfigMap", "Secret")} - used <= ELSEWHERE


def test_the_page_tells_of_each_secret_that_comes_from_elsewhere() -> None:
    for _, name in ELSEWHERE:
        assert f"`{name}`" in PAGE.read_text()


def test_each_port_that_is_named_is_a_container_s(resources: list[Resource]) -> None:
    for deployment in deployments(resources):
        for container in containers(deployment):
            ports = {port["name"] for port in container["ports"]}
            probes = [container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
            assert {probe["httpGet"]["port"] for probe in probes} == {"http"} <= ports
    for service in (r for r in resources if r["kind"] == "Service"):
        assert [port["targetPort"] for port in service["spec"]["ports"]] == ["flight"]
    policy = find(resources, "NetworkPolicy", "floeberg")["spec"]
    named = {p["port"] for rule in (*policy["ingress"], *policy["egress"]) for p in rule["ports"]}
    assert {port for port in named if isinstance(port, str)} <= {"flight", "http"}


def test_coordinators_find_workers_by_the_headless_service(
    resources: list[Resource], tmp_path: Path
) -> None:
    config = container_of(resources, "coordinator").config(tmp_path)
    service = find(resources, "Service", "floeberg-workers")

    assert isinstance(config, CoordinatorConfig)
    (uri,) = config.worker_dns
    name = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert uri.split("://")[1] == f"{name}:{service['spec']['ports'][0]['port']}"
    assert service["spec"]["clusterIP"] == "None"
    # pods are ready only once they are found
    assert service["spec"]["publishNotReadyAddresses"]


def test_one_coordinator_may_be_missed(resources: list[Resource]) -> None:
    coordinators = find(resources, "Deployment", "floeberg-coordinator")
    budget = find(resources, "PodDisruptionBudget", "floeberg-coordinator")

    assert coordinators["spec"]["replicas"] > budget["spec"]["maxUnavailable"]


def test_the_autoscaler_alone_says_how_many_workers_there_are(resources: list[Resource]) -> None:
    scaler = find(resources, "HorizontalPodAutoscaler", "floeberg-worker")["spec"]
    target = find(resources, scaler["scaleTargetRef"]["kind"], scaler["scaleTargetRef"]["name"])

    assert "replicas" not in target["spec"]
    assert scaler["minReplicas"] >= 2
    for container in containers(target):
        assert container["resources"]["requests"]["cpu"], "it is what utilisation is measured by"


@pytest.mark.parametrize("service", SERVICES)
def test_floeberg_takes_what_a_pod_tells_it(
    resources: list[Resource], service: str, tmp_path: Path
) -> None:
    container = container_of(resources, service)
    (spec,) = containers(find(resources, "Deployment", f"floeberg-{service}"))

    config = container.config(tmp_path)

    ports = {port["name"]: port["containerPort"] for port in spec["ports"]}
    assert (config.port, config.http_port) == (ports["flight"], ports["http"])
    assert config.advertise is not None
    mounted = tuple(f"{mount['mountPath']}/" for mount in spec["volumeMounts"])
    for name in ("key_file", "auth_tokens", "tls_cert", "tls_key", "tls_roots"):
        path = getattr(config, name)
        assert path is None or str(path).startswith(mounted), name


@pytest.mark.parametrize("service", SERVICES)
def test_a_pod_has_the_time_to_drain(
    resources: list[Resource], service: str, tmp_path: Path
) -> None:
    deployment = find(resources, "Deployment", f"floeberg-{service}")
    (spec,) = containers(deployment)
    hook = spec.get("lifecycle", {}).get("preStop", {"exec": {"command": ["sleep", "0"]}})
    program, seconds = hook["exec"]["command"]
    config = container_of(resources, service).config(tmp_path)

    assert program == "sleep"
    needed = int(seconds) + config.drain_seconds + CUTTING_SECONDS
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= needed


def test_pods_are_allowed_nothing_that_they_do_not_need(resources: list[Resource]) -> None:
    for deployment in deployments(resources):
        pod = pod_of(deployment)
        assert pod is not None
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
    namespace = find(resources, "Namespace", "floeberg")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_no_secret_is_in_the_repository() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "deploy"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    ).stdout.splitlines()

    assert [name for name in tracked if "/secrets/" in name] == []


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_pods_make_a_fleet(manifests: Path, flavour: str, tmp_path: Path) -> None:
    resources = render(manifests / flavour)
    (tmp_path / "lake").mkdir()
    served: dict[str, Any] = {"FLOEBERG_WAREHOUSE": str(tmp_path / "lake"), "FLOEBERG_CATALOG": ""}
    if flavour == "overlays/tls":
        certificate = loopback_certificate(tmp_path)
        served |= {
            "FLOEBERG_TLS_CERT": str(certificate.cert),
            "FLOEBERG_TLS_KEY": str(certificate.key),
            "FLOEBERG_TLS_ROOTS": str(certificate.cert),
        }
    served["FLOEBERG_ADVERTISE"] = POD_HERE
    with container_of(resources, "worker").running(tmp_path, "worker", **served) as worker:
        location = worker.addresses["location"]
        # the name's scheme as the coordinator has it, with the test's name and port
        environment = container_of(resources, "coordinator").environment
        scheme = environment["FLOEBERG_WORKER_DNS"].partition("://")[0]
        served["FLOEBERG_WORKER_DNS"] = f"{scheme}://localhost:{location.rpartition(':')[2]}"
        here = container_of(resources, "coordinator").running(tmp_path, "coordinator", **served)
        with here as coordinator:
            for process, service in ((coordinator, "coordinator"), (worker, "worker")):
                (spec,) = containers(find(resources, "Deployment", f"floeberg-{service}"))
                for kind in ("startup", "liveness", "readiness"):
                    probe = f"{process.addresses['http']}{spec[f'{kind}Probe']['httpGet']['path']}"
                    wait_until(lambda url=probe: httpx.get(url).status_code == 200, probe)
    host = "10-1-2-3.floeberg-workers.floeberg.svc" if "tls" in flavour else POD_IP
    assert location.split(":")[1] == f"//{host}"
