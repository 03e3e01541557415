"""The folder that programs write to: counts and removes its files."""

import os
import shutil


def files_in(folder: str) -> int:
    """Return the number of files in use on the folder's own file system, else in the folder."""
    if os.path.ismount(folder):
        state = os.statvfs(folder)
        return state.f_files - state.f_ffree
    return sum(len(names) + len(folders) for _, folders, names in os.walk(folder))


def empty_folder(folder: str) -> bool:
    """Remove everything in the folder; return whether that succeeded."""
    try:
        os.chmod(folder, 0o700)
        for path, folders, _ in os.walk(folder):
            for name in folders:
                if not os.path.islink(os.path.join(path, name)):
                    os.chmod(os.path.join(path, name), 0o700)
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
    except (OSError, RecursionError):
        return False
    return True
