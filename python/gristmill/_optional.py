"""Frameworks that not everybody has."""


def needed(missing: ModuleNotFoundError, module: str, name: str) -> ModuleNotFoundError:
    """What to raise where `import module` raised `missing`: what to install, unless something behind it is missing."""
    if missing.name != module:
        return missing
    return ModuleNotFoundError(f"gristmill.{module} needs {name}: pip install {module}", name=module)
