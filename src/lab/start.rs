//! The start of a lab: its servers together, then its instances, then nginx.

use super::{Lab, Options, sentinel, server::Tier, zookeeper};
use crate::{chinese::told, failure::Failure, stdout};
use futures::future::try_join_all;
use indicatif::ProgressBar;

impl Lab {
    /// Starts what the options ask for and waits until each has answered: the servers side by side, then the
    /// instances, then nginx.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`]: a port that is occupied, a program that is missing, or a server that does not become
    /// healthy, with the end of its log. What had been started is stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops what had been started.
    pub async fn start(options: Options) -> Result<Self, Failure> {
        let progress = options.progress;
        let mut lab = options.plan()?;
        let complete = lab
            .members
            .iter()
            .all(|m| m.tier != Tier::Server || m.starts_with_lab);
        let progress = if progress {
            stdout::progress(
                lab.members.iter().filter(|m| m.starts_with_lab).count(),
                false,
            )
        } else {
            ProgressBar::hidden()
        };
        for tier in [Tier::Server, Tier::Instance, Tier::Gate] {
            let members = lab
                .members
                .iter_mut()
                .filter(|m| m.tier == tier && m.starts_with_lab);
            try_join_all(members.map(async |member| {
                // All servers start together, and the members of an ensemble with the majority that they need.
                member
                    .start(complete || tier == Tier::Server, &lab.settings)
                    .await?;
                progress.inc(1);
                let name = member.title();
                progress.set_message(told!("{name} 已启动", "{name} is up"));
                Ok(())
            }))
            .await?;
        }
        if let Some(of) = lab.replica_pair.clone() {
            let (links, console) = (lab.links_to_main(), lab.settings.console.clone());
            lab.follower_tasks
                .spawn(sentinel::follow_failovers(of, links, console));
        }
        progress.finish_and_clear();
        if let Some(version) = zookeeper::version(&lab.addresses.zookeeper.connect).await {
            let versions = &mut lab.addresses.versions;
            versions.insert(zookeeper::NAME.to_owned(), format!("ZooKeeper {version}"));
        }
        lab.publish()?;
        Ok(lab)
    }
}
