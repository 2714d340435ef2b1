//! What other people's tools make of `/openapi.json`: generators and validators of several languages, and requests that are made up
//! after it, by `scripts/clients`.

use crate::support::*;
use oversell_lab::lab::Lab;
use tokio::process::Command;

#[apply(soak_test!)]
async fn tools_of_others_read_the_document() -> Result<()> {
    let mut options = labs::short_leases();
    // What breaks servers is refused to requests that are made up.
    options.env.push(("OVERSELL__ADMIN__TOKEN".to_owned(), "open-sesame".to_owned()));
    let lab = Lab::start(options).await?;
    let output = Command::new("scripts/clients").args([&lab.addresses().http, "open-sesame"]).kill_on_drop(true).output().await?;
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}");
    ensure!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    lab.stop().await;
    Ok(())
}
