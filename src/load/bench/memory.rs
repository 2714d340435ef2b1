//! The memory of a process, as the kernel tells it.

use oversell_lab::terminal::failure::{Failure, unusable};

/// The most memory that a process has had resident since it started (`VmHWM`), in MB of 10⁶ bytes.
pub fn peak_memory_mb(pid: u32) -> Result<f64, Failure> {
    read_memory_mb(pid, "VmHWM")
}

/// The memory that a process has resident now (`VmRSS`), in MB of 10⁶ bytes.
pub(super) fn resident_memory_mb(pid: u32) -> Result<f64, Failure> {
    read_memory_mb(pid, "VmRSS")
}

/// Reads a line of `/proc/{pid}/status`, in MB of 10⁶ bytes.
fn read_memory_mb(pid: u32, line: &str) -> Result<f64, Failure> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).map_err(|e| unusable!("{path}: {e}"))?;
    parse_kilobytes(&status, line).map(|kb| kb * 1024.0 / 1e6).ok_or_else(|| unusable!("{path} has no line {line}"))
}

/// The kilobytes in the line `wanted` of a process's status; `None` if there is no such line.
fn parse_kilobytes(status: &str, wanted: &str) -> Option<f64> {
    let mut values = status.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| *name == wanted);
    values.find_map(|(_, value)| value.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_read_from_vmhwm() {
        let status = "Name:\toversell\nVmHWM:\t   39064 kB\nVmRSS:\t   30000 kB\n";
        assert_eq!((parse_kilobytes(status, "VmHWM"), parse_kilobytes(status, "VmRSS")), (Some(39064.0), Some(30000.0)));
        assert_eq!(parse_kilobytes("Name:\toversell\n", "VmHWM"), None);
        assert!(peak_memory_mb(std::process::id()).unwrap() > 0.5);
    }
}
