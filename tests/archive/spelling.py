"""Values as they are spelled: what ``==`` takes for equal and JSON does not."""


def spelled(value: object) -> object:
    """A value in which everything Python tells apart differs, NaN equals NaN, order counts."""
    if isinstance(value, dict):
        return [(key, spelled(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [spelled(item) for item in value]
    return type(value), hex(value) if isinstance(value, int) else repr(value)
