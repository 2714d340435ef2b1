//! Embeds the page's files, so that a lone instance serves them without nginx.

fn main() {
    memory_serve::load_directory("static");
}
