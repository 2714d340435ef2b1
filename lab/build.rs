//! Makes the library by which the lab moves the clocks of Redis nodes. If that fails, warns and makes an empty file.

use std::{env, fs, path::PathBuf, process::Command};

fn main() {
    const SOURCE: &str = "src/lab/preloaded_clock.rs";
    println!("cargo:rerun-if-changed={SOURCE}");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("clock.so");
    let mut rustc = Command::new(env::var("RUSTC").expect("cargo sets it"));
    rustc.args(["--edition=2024", "--crate-type=cdylib", "-Cpanic=abort"]);
    rustc.args(["-Copt-level=2", "-Cstrip=symbols", SOURCE, "--target"]);
    rustc.arg(env::var("TARGET").expect("cargo sets it"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let made = rustc.arg("-o").arg(&out).status();
    if !made.is_ok_and(|made| made.success()) {
        println!("cargo:warning=clocks of Redis nodes cannot be moved here: {SOURCE} is not built");
        fs::write(out, "").expect("OUT_DIR can be written");
    }
}
