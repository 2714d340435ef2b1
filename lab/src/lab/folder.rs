//! The lab's folder. A marker file, locked while the lab runs, shows that a lab made it: a folder without the marker is
//! never emptied or removed.
//!
//! A named folder (`target/lab`) is emptied at the next start, so that the last logs can be read until then. An unnamed
//! one is removed when the lab ends.

use crate::{
    addresses::{Addresses, LAB_FOLDER_MARKER},
    terminal::failure::{Failure, unusable, unusable_localized},
};
use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};
use tempfile::NamedTempFile;

/// The file in the folder that holds the addresses of the lab.
pub(super) const LAB_JSON: &str = "lab.json";
/// The beginning of the names of unnamed folders: `target/lab-PID-N`.
const UNNAMED_FOLDER_PREFIX: &str = "lab-";

/// The folder of a lab, locked until this is dropped; then an unnamed one is removed, and `lab.json` out of a named one.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    is_kept: bool,
    _lock: File,
}

impl Folder {
    /// The named folder, emptied, or a new one under the build's `target` folder.
    pub(super) fn open(named: Option<&Path>) -> Result<Self, Failure> {
        match named {
            Some(path) => Self::open_named(path),
            None => Self::create_unnamed(&cargo_target_folder()),
        }
    }

    /// Creates the folder if it is missing, else empties it. Fails if it is neither empty nor a lab's, or if a lab uses it.
    fn open_named(path: &Path) -> Result<Self, Failure> {
        let path = std::path::absolute(path).map_err(|e| unusable(path, &e))?;
        fs::create_dir_all(&path).map_err(|e| unusable(&path, &e))?;
        check_lab_folder(&path)?;
        Self::lock_and_empty(path, true)
    }

    /// Checks whether this folder could be opened now. Changes nothing.
    pub(super) fn check_can_open(named: &Path) -> Result<(), Failure> {
        let path = std::path::absolute(named).map_err(|e| unusable(named, &e))?;
        // A lab creates missing folders, so the nearest existing one counts.
        let existing = path.ancestors().find(|folder| folder.exists());
        let existing = existing.unwrap_or(&path);
        NamedTempFile::new_in(existing).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => permission_denied(existing),
            _ => unusable(existing, &e),
        })?;
        if existing == path && check_lab_folder(&path)? {
            lock(&path)?;
        }
        Ok(())
    }

    /// A new folder in `target`, which is removed when this is dropped. Removes the folders that killed labs have left.
    pub(super) fn create_unnamed(target: &Path) -> Result<Self, Failure> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        remove_orphans(target);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = target.join(format!("{UNNAMED_FOLDER_PREFIX}{}-{number}", std::process::id()));
        fs::create_dir_all(&path).map_err(|e| unusable(&path, &e))?;
        Self::lock_and_empty(path, false)
    }

    /// Locks the folder, and removes its contents but the marker; `is_kept` keeps it when this is dropped.
    fn lock_and_empty(path: PathBuf, is_kept: bool) -> Result<Self, Failure> {
        let lock = lock(&path)?;
        remove_contents(&path).map_err(|e| unusable(&path, &e))?;
        Ok(Self { path, is_kept, _lock: lock })
    }

    /// Whether the folder stays when this is dropped, as a named one does.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Where neighbouring labs share files: Cargo's `target` folder; `None` if this folder does not lie right in it.
    pub(super) fn shared_files_folder(&self) -> Option<PathBuf> {
        let target = std::path::absolute(cargo_target_folder()).ok()?;
        (self.path.parent()? == target).then_some(target)
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes `lab.json` in one step: a reader sees all of it or none.
    pub(super) fn publish(&self, addresses: &Addresses) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(addresses).map_err(|e| unusable(&self.path, &e))?;
        write_atomically(&self.path.join(LAB_JSON), &text).map_err(|e| unusable(&self.path, &e))
    }

    /// Removes `lab.json`, if it is there.
    pub(super) fn unpublish(&self) {
        if let Err(error) = fs::remove_file(self.path.join(LAB_JSON)) {
            tracing::debug!(%error, "{LAB_JSON} was not there");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.unpublish();
        if !self.is_kept
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, "{} cannot be removed", self.path.display());
        }
    }
}

/// Writes a temporary file that only its owner may read, and renames it: a reader sees all of it or none.
pub(super) fn write_atomically(file: &Path, text: &str) -> io::Result<()> {
    let beside = NamedTempFile::new_in(file.parent().unwrap_or(Path::new("")))?;
    fs::write(beside.path(), text)?;
    beside.persist(file)?;
    Ok(())
}

/// Cargo's `target` folder: `CARGO_TARGET_DIR`, else the one that this program was built in, else one in the current folder.
fn cargo_target_folder() -> PathBuf {
    let built_in = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.ancestors().find(|folder| folder.ends_with("target")).map(Path::to_owned));
    let here = || std::path::absolute("target").unwrap_or_else(|_| PathBuf::from("target"));
    std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).or(built_in).unwrap_or_else(here)
}

/// Whether the folder has the marker. Fails for a folder that is not empty and has none.
fn check_lab_folder(path: &Path) -> Result<bool, Failure> {
    let is_marked = path.join(LAB_FOLDER_MARKER).exists();
    let mut entries = fs::read_dir(path).map_err(|e| unusable(path, &e))?;
    if !is_marked && entries.next().is_some() {
        return Err(unusable_localized!(
            "{} 不是实验环境建的，又不是空的：用 --dir 另选一个目录",
            "{} was not made by a lab and is not empty: choose another folder with --dir",
            path.display()
        ));
    }
    Ok(is_marked)
}

/// Locks the marker, which is created if it is missing. Fails if another lab has the lock.
fn lock(path: &Path) -> Result<File, Failure> {
    let mark = path.join(LAB_FOLDER_MARKER);
    let file = File::options().create(true).append(true).open(&mark).map_err(|e| match e.kind() {
        io::ErrorKind::PermissionDenied => permission_denied(path),
        _ => unusable(&mark, &e),
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(unusable_localized!(
            "{} 里已经有一个实验环境在运行：停掉它，或用 --dir 另选一个目录",
            "a lab is already running in {}: stop it, or choose another folder with --dir",
            path.display()
        )),
        Err(TryLockError::Error(e)) => Err(unusable(&mark, &e)),
    }
}

/// Removes everything in the folder except the marker.
fn remove_contents(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LAB_FOLDER_MARKER {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes unnamed folders of killed labs: their process is gone and nobody has the lock.
fn remove_orphans(target: &Path) {
    for entry in fs::read_dir(target).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(UNNAMED_FOLDER_PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        let orphan = pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if !orphan || !entry.path().join(LAB_FOLDER_MARKER).exists() {
            continue;
        }
        if let Ok(_lock) = lock(&entry.path())
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::debug!(%error, "{} cannot be removed", entry.path().display());
        }
    }
}

fn permission_denied(path: &Path) -> Failure {
    unusable_localized!(
        "没有权限写入 {}，它可能属于另一个用户：用 --dir 另选一个目录",
        "permission denied to write to {}, which another user may own: choose another folder with --dir",
        path.display()
    )
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    unusable!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Uid, setfsuid};
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    #[test]
    fn a_folder_that_a_lab_could_not_open_fails_its_check() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = folder.path().join("lab");
        Folder::check_can_open(&named).expect("a lab makes it");
        assert!(!named.exists(), "the check makes nothing");
        let lab = Folder::open(Some(&named)).expect("a lab");
        let error = Folder::check_can_open(&named).expect_err("it is in use");
        assert!(error.to_string().contains("already running"), "{error}");
        drop(lab);
        Folder::check_can_open(&named).expect("the lab has ended");
    }

    #[test]
    fn a_folder_of_another_user_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = folder.path().join(LAB_FOLDER_MARKER);
        fs::write(&mark, "").expect("a mark");
        for (path, mode) in [(folder.path(), 0o777), (&mark, 0)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("of this user");
        }
        // Makes only this thread another user, in case root runs the test.
        let user = setfsuid(Uid::from_raw(65534));
        let error = Folder::check_can_open(folder.path());
        setfsuid(user);
        let error = error.expect_err("it is not ours").to_string();
        assert!(error.contains("another user") && error.contains("--dir"), "{error}");
    }
}
