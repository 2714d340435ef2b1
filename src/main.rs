//! `oversell`: see, measure and understand overselling.

fn main() -> std::process::ExitCode {
    oversell::cli::main()
}
