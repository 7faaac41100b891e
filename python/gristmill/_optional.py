"""Errors about optional frameworks that are not installed."""


def needed(missing: ModuleNotFoundError, module: str, name: str, package: str | None = None) -> ModuleNotFoundError:
    """Returns the exception for a failed import in `gristmill.module`.

    The exception names the package to install, or is `missing` itself if a dependency of that package is missing.
    `package` defaults to `module`.
    """
    package = package or module
    imported = package.split("-")[0]
    if missing.name is None or missing.name not in (imported, f"{imported}.metrics"):
        return missing
    return ModuleNotFoundError(f"gristmill.{module} needs {name}: pip install {package}", name=missing.name)
