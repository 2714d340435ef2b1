//! A file that is added to these folders is compiled into the program: cargo must look at them.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=static");
}
