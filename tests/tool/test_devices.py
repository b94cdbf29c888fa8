"""The list of devices."""

from harness import REQUIRED, run


def test_every_backend_appears_once_at_least():
    listed = run("devices", "--report", "json").json
    assert {"cpu", "opencl", "cuda"} <= {device["backend"] for device in listed["devices"]}
    for name in REQUIRED:
        assert any(device["backend"] == name and device["available"] for device in listed["devices"]), name


def test_json_has_one_schema():
    listed = run("devices", "--report", "json").json
    assert set(listed) == {"version", "build", "devices"}
    for device in listed["devices"]:
        assert set(device) == {"id", "backend", "kind", "name", "available", "exact", "compute_units", "memory_bytes",
                               "driver", "kernels", "reason"}
        assert isinstance(device["available"], bool) and isinstance(device["kernels"], list)
        if device["available"]:
            assert device["kernels"] and device["compute_units"] > 0
        else:
            assert device["reason"], device


def test_text_says_why_a_backend_is_unavailable():
    listed = run("devices", "--report", "json").json
    text = run("devices")
    assert text.code == 0
    for device in listed["devices"]:
        assert device["id"] in text.out
        if not device["available"]:
            assert device["reason"] in text.out


def test_an_empty_machine_still_has_the_cpu():
    """Without drivers the list says so for each backend and the tool goes on."""
    listed = run("devices", "--report", "json", environment={"OCL_ICD_VENDORS": "/nonexistent"}).json
    assert any(device["backend"] == "cpu" and device["available"] for device in listed["devices"])
    opencl = [device for device in listed["devices"] if device["backend"] == "opencl"]
    assert opencl and all(not device["available"] and device["reason"] for device in opencl)
