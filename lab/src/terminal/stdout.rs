//! The output of a command. A stdout that fails (a closed pipe, a full disk) ends the command as a signal does, with exit
//! status 1 and a line on stderr, not with a panic. A command opens its output files ([`Output::open`]) before it
//! measures anything.

use crate::terminal::{
    chinese::localized,
    failure::{Failure, unusable, unusable_localized},
    wrap::wrap_lines,
};
use console::{Term, style};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::{
    fmt,
    fs::File,
    io::{self, Seek, Write},
    path::PathBuf,
    process::Stdio,
    str::FromStr,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// The first error of stdout; unset as long as it works.
static FAILED: OnceLock<String> = OnceLock::new();
static GONE: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);
/// Whether stdout has the text of a file: lines for people then go to stderr.
static IS_A_FILE: AtomicBool = AtomicBool::new(false);

/// As `println!`, for a stdout that may fail.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::terminal::stdout::print_line(format_args!($($text)*)) };
}
pub use say;

/// Prints a line, wrapped at words in a terminal. It goes to stderr while stdout has the text of a file.
pub fn print_line(words: fmt::Arguments<'_>) {
    let words = match terminal_width() {
        Some(width) => &wrap_lines(&words.to_string(), width),
        None => &words as &dyn fmt::Display,
    };
    if IS_A_FILE.load(Ordering::Relaxed) {
        print_to_stderr(format_args!("{words}"));
    } else {
        print(format_args!("{words}\n")).ok();
    }
}

/// Prints a line on stdout without wrapping it, even while stdout has the text of a file: a script, or a command to copy.
pub fn print_unwrapped_line(text: &str) {
    print(format_args!("{text}\n")).ok();
}

/// Where a program that this command runs writes for people: stdout, or stderr while stdout has the text of a file.
pub fn stdout_of_child() -> Stdio {
    match IS_A_FILE.load(Ordering::Relaxed) {
        true => io::stderr().into(),
        false => Stdio::inherit(),
    }
}

/// Colours a mark, if the terminal for people takes colours: ✓ green, ✗ red, any other yellow.
pub fn colour_mark(mark: &str) -> String {
    if !has_colours() {
        return mark.to_owned();
    }
    let styled = style(mark).bold().force_styling(true);
    let styled = match mark {
        "✓" => styled.green(),
        "✗" => styled.red(),
        _ => styled.yellow(),
    };
    styled.to_string()
}

/// Whether lines for people may have colours.
pub fn has_colours() -> bool {
    match IS_A_FILE.load(Ordering::Relaxed) {
        true => console::colors_enabled_stderr(),
        false => console::colors_enabled(),
    }
}

/// A progress bar on stderr, hidden if that is no terminal; `estimates` shows about how much time is left.
pub fn progress_bar(steps: usize, estimates: bool) -> ProgressBar {
    let left = match estimates {
        true => localized!("还要约 {{eta}}  ", "about {{eta}} left  "),
        false => String::new(),
    };
    let template = format!("{{elapsed_precise}} [{{bar:30}}] {{pos}}/{{len}}  {left}{{msg}}");
    let style = ProgressStyle::with_template(&template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(steps as u64).with_style(style.progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// Prints a line on stderr, if it takes one.
pub fn print_to_stderr(words: fmt::Arguments<'_>) {
    writeln!(io::stderr(), "{words}").ok();
}

/// Prints on stdout at once, without a line end. The first error is kept for [`failure`], and ends the command by [`gone`].
fn print(words: fmt::Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let printed = out.write_fmt(words).and_then(|()| out.flush());
    printed.inspect_err(|error| {
        FAILED.get_or_init(|| error.to_string());
        GONE.cancel();
    })
}

/// Cancelled when stdout fails.
pub fn gone() -> CancellationToken {
    GONE.clone()
}

/// The failure of a command whose stdout failed; `None` if it has not failed so far.
pub fn failure() -> Option<Failure> {
    let why = FAILED.get()?;
    Some(broken_stdout(why))
}

fn broken_stdout(why: &dyn fmt::Display) -> Failure {
    Failure::Output(localized!("标准输出写不进去了：{why}", "stdout cannot be written: {why}"))
}

/// The width of the terminal in columns, 80 if it does not tell; `None` if the lines for people go to a file or a pipe.
pub fn terminal_width() -> Option<usize> {
    let terminal = match IS_A_FILE.load(Ordering::Relaxed) {
        true => Term::stderr(),
        false => Term::stdout(),
    };
    // A terminal with 0 columns does not know its width.
    let width = || terminal.size_checked().map_or(80, |(_, columns)| columns.into());
    terminal.is_term().then(width)
}

/// A file that a command is to write; `-` is stdout.
#[derive(Debug, Clone)]
pub struct Output {
    path: PathBuf,
    file: OnceLock<Arc<File>>,
}

impl FromStr for Output {
    type Err = std::convert::Infallible;

    /// Takes any path, and opens nothing: [`open`](Output::open) does.
    fn from_str(path: &str) -> Result<Self, Self::Err> {
        Ok(Self { path: path.into(), file: OnceLock::new() })
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Output {
    fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Opens the file, or creates it; its content stays until [`write`](Self::write). If it is stdout, lines for people go to
    /// stderr from now on.
    /// Errors: [`Failure::Unusable`] if it cannot be written.
    pub fn open(&self) -> Result<(), Failure> {
        if self.is_stdout() {
            IS_A_FILE.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(unusable_localized!("{self}：没有目录 {}", "{self}: there is no folder {}", folder.display()));
        }
        let file =
            File::options().write(true).create(true).truncate(false).open(&self.path).map_err(|e| unusable!("{self}: {e}"))?;
        self.file.get_or_init(|| Arc::new(file));
        Ok(())
    }

    /// Replaces the file's content with this text; stdout and a device get the text after what they had.
    /// Errors: [`Failure::Output`] if it takes no more, [`Failure::Unusable`] if it cannot be opened.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        if self.is_stdout() {
            let printed = print(format_args!("{text}"));
            return printed.map_err(|e| broken_stdout(&e));
        }
        self.open()?;
        let Some(mut file) = self.file.get().map(Arc::as_ref) else {
            return Ok(());
        };
        let mut written = || {
            if file.metadata()?.is_file() {
                file.rewind()?;
                file.set_len(0)?;
            }
            file.write_all(text.as_bytes())
        };
        written().map_err(|e| Failure::Output(format!("{self}: {e}")))
    }

    /// Writes the value as JSON on several lines, as [`write`](Self::write) does.
    pub fn write_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|e| unusable!("JSON: {e}"))?;
        self.write(&(text + "\n"))
    }
}

/// The arguments of a command that may write files.
pub trait Outputs {
    /// The files that it asks for; empty if none.
    fn outputs(&self) -> Vec<&Output>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(path: &str) -> Output {
        path.parse().unwrap_or_else(|never| match never {})
    }

    #[test]
    fn an_opened_file_keeps_its_text_until_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.json");
        std::fs::write(&path, "a longer text of before").expect("a file");
        let file = output(&path.to_string_lossy());
        file.open().expect("it can be written");
        let before = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(before, "a longer text of before");
        file.write("new").expect("it is written");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "new");
    }

    #[test]
    fn a_write_error_names_the_file() {
        for (path, words) in
            [("/no/such/folder/x.json", "no folder /no/such/folder"), ("/proc/x.json", "/proc/x.json: "), ("/", "/: ")]
        {
            let error = output(path).open().expect_err(path).to_string();
            assert!(error.contains(words), "{error}");
        }
        let full = output("/dev/full");
        full.open().expect("it can be opened");
        let error = full.write("text").expect_err("it is full");
        assert!(matches!(&error, Failure::Output(why) if why.starts_with("/dev/full: ")), "{error}");
    }
}
