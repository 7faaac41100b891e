"""Frameworks that not everybody has."""


def needed(missing: ModuleNotFoundError, module: str, name: str, package: str | None = None) -> ModuleNotFoundError:
    """What to raise where the import that `gristmill.module` needs raised `missing`: what to install, unless something behind it is missing.

    The `package` to install has the name of the module, if nothing else is said.
    """
    package = package or module
    imported = package.split("-")[0]
    if missing.name is None or missing.name not in (imported, f"{imported}.metrics"):
        return missing
    return ModuleNotFoundError(f"gristmill.{module} needs {name}: pip install {package}", name=missing.name)
