//! Windows line ends, of which `build.rs` refuses every text that is compiled in or mounted into containers: a shell does not run
//! such a script, and a migration would have another checksum.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The paths of all texts with Windows line ends at and below these paths, sorted; a missing path has none.
pub(crate) fn texts_with_windows_line_ends(paths: &[&Path]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths.iter().filter(|path| path.exists()) {
        collect(path, &mut found)?;
    }
    found.sort();
    Ok(found)
}

/// Adds the file, or all files below the folder, that are UTF-8 and have a Windows line end.
fn collect(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), found)?;
        }
    } else if str::from_utf8(&fs::read(path)?).is_ok_and(|text| text.contains("\r\n")) {
        // Other files are pictures.
        found.push(path.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_text_with_windows_line_ends_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("below");
        fs::create_dir(&below).expect("a folder in it");
        let windows = below.join("windows.md");
        for (file, content) in [
            (&below.join("unix.md"), &b"# One\n\ntwo\n"[..]),
            (&windows, b"# One\r\n\r\ntwo\r\n"),
            (&below.join("picture.png"), b"\x89PNG\r\n\x1a\n"),
        ] {
            fs::write(file, content).expect("a file");
        }
        let found = texts_with_windows_line_ends(&[folder.path(), Path::new("/nowhere")]);
        assert_eq!(found.expect("all can be read"), [windows]);
    }

    /// Checks the line ends of a checkout by git, whatever `core.autocrlf` is.
    #[test]
    fn git_checks_every_text_out_with_unix_line_ends() {
        let git = Command::new("git")
            .args(["-c", "core.autocrlf=true", "ls-files", "--eol"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("git");
        assert!(git.status.success(), "{git:?}");
        let listed = String::from_utf8(git.stdout).expect("UTF-8");
        assert!(listed.lines().count() > 500, "{listed}");
        for line in listed.lines() {
            // i/KIND w/KIND attr/ATTRIBUTES, and after a tab the file.
            let (kinds, _) = line.split_once('\t').expect("a file");
            let is_text = kinds.contains("attr/text=auto eol=lf");
            let is_kept = kinds.contains("attr/-text");
            assert!(is_text || is_kept, "no line ends for {line}");
            assert!(!kinds.contains("crlf") && !kinds.contains("mixed"), "{line}");
        }
    }
}
