//! `oversell judge`: what a load tool has bought stands in the books of the instances and in the stores.

use crate::support::*;
use serde_json::Value;
use tokio::process::Command;

/// Sixty buyers, twenty at a time, each inside for 30 ms; and words on stdout, which must not mix with the JSON.
const SIXTY_BUYERS: &str = r#"echo beside the JSON; seq 60 | xargs -P 20 -I@ curl -sS -o /dev/null "$OVERSELL_URL?hold_ms=30""#;

/// `none` sells more than is gone, and says so; a client that hangs up is an unknown, and no broken promise. A tool that fails, is not
/// there, or buys elsewhere: status 2, and the line says which.
#[apply(test!)]
async fn what_a_tool_has_bought_is_counted_whatever_it_says_itself() -> Result<()> {
    let lab = labs::full_lab().await?;
    let folder = tempfile::tempdir()?;
    let lab_json = folder.path().join("lab.json");
    std::fs::write(&lab_json, serde_json::to_string(lab.addresses())?)?;
    let judged = async |options: &str, tool: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oversell"));
        command.args(["judge", "--json", "-", "--lab-json"]).arg(&lab_json).args(options.split_whitespace()).arg("--").args(tool);
        let output = command.env("LC_ALL", "C.UTF-8").kill_on_drop(true).output().await?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::Ok((output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default(), words))
    };
    let (code, none, words) = judged("--strategy none --stock 100", &["sh", "-c", SIXTY_BUYERS]).await?;
    let books = &none["strategies"][0];
    ensure!(
        code == Some(0) && books["name"] == "none" && books["received"] == 60 && books["sold"] == 60,
        "{code:?} {none} {words}"
    );
    let (gone, oversold) = (none["gone"].as_i64(), none["oversold"].as_i64());
    ensure!(gone.zip(oversold).is_some_and(|(gone, over)| over > 0 && gone + over == 60), "{none}");

    let hangs_up = r#"curl -s --max-time 0.3 "$OVERSELL_URL?hold_ms=5000"; "#.to_owned();
    let (code, exact, words) =
        judged("--strategy select-for-update --stock 50", &["sh", "-c", &(hangs_up + SIXTY_BUYERS)]).await?;
    let books = &exact["strategies"][0];
    ensure!(code == Some(0) && books["received"] == 61 && books["unknown"] == 1, "{code:?} {exact} {words}");
    ensure!(exact["gone"] == 50 && exact["oversold"] == 0 && books["refused"] == 0, "{exact}");

    for (tool, wanted) in [
        (&["sh", "-c", "exit 3"][..], "sh has failed: exit status: 3"),
        (&["no-such-tool"], "no-such-tool cannot be run"),
        (&["true"], "has bought nothing of product 1"),
    ] {
        let (code, _, words) = judged("", tool).await?;
        ensure!(code == Some(2) && words.contains(wanted), "{code:?} {words}");
    }
    labs::keep_for_next_test(lab);
    Ok(())
}
