"""What TRL needs to run among tests whose warnings are errors, and a table of measured errors."""

import os

import pytest

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"  # `rollout_func` warns that it may change

ALLOWED = (
    r"ignore:`is_gradient_checkpointing` is deprecated:FutureWarning",  # TRL's scoring reads it
)


def pytest_collection_modifyitems(items):
    """Allow the warnings that TRL 1.16 itself causes."""
    for item in items:
        if "parity" in item.path.parts:
            for pattern in ALLOWED:
                item.add_marker(pytest.mark.filterwarnings(pattern))


@pytest.fixture(scope="session")
def llama_folder(build_llama, tmp_path_factory):
    """The folder of a tiny Llama, from which TRL loads its reference."""
    folder = tmp_path_factory.mktemp("llama")
    build_llama().save_pretrained(folder)
    return folder


@pytest.fixture
def saved_llama(build_llama, llama_folder):
    """A tiny Llama that also lies in a folder."""
    model = build_llama()
    model.config._name_or_path = str(llama_folder)
    return model


@pytest.fixture
def measured(record_property):
    """Record the largest error of a group of options: `measured("loss", 1e-13)`."""

    def record(group, error):
        record_property("parity error", (group, error))
        return error

    return record


def pytest_terminal_summary(terminalreporter):
    """Show the largest relative error of each group of options."""
    worst = {}
    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get(
        "failed", []
    ):
        for name, value in report.user_properties:
            if name == "parity error":
                group, error = value
                worst[group] = max(worst.get(group, 0.0), error)
    if worst:
        terminalreporter.section("largest relative difference to TRL")
        for group in sorted(worst):
            terminalreporter.write_line(f"{group:<60} {worst[group]:.1e}")
