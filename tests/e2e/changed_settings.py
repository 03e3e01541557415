"""Settings of a short run with others in their place."""


def changed(settings, *more):
    """Return the settings, less those that `more` names, and then `more`."""
    names = {str(one).partition("=")[0] for one in more if "=" in str(one)}
    return (*(one for one in settings if one.partition("=")[0] not in names), *more)
