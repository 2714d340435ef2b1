//! The start of a lab: its servers together, then its instances, then nginx.

use super::{Lab, Options, sentinel, server::Tier, zookeeper};
use crate::terminal::{chinese::localized, failure::Failure, stdout};
use futures::future::try_join_all;
use indicatif::ProgressBar;

impl Lab {
    /// Starts the servers together, then the instances, then nginx, waits until each is healthy, and writes `lab.json`.
    /// Errors: [`Failure::Unusable`] if a port is occupied, a program is missing, or a server does not become healthy; the
    /// message has the end of its log. Dropping the future, like an error, stops what had been started.
    pub async fn start(options: Options) -> Result<Self, Failure> {
        let progress = options.progress;
        let mut lab = options.plan()?;
        let complete = lab.members.iter().all(|m| m.tier != Tier::Server || m.starts_with_lab);
        let progress = if progress {
            stdout::progress_bar(lab.members.iter().filter(|m| m.starts_with_lab).count(), false)
        } else {
            ProgressBar::hidden()
        };
        for tier in [Tier::Server, Tier::Instance, Tier::Gate] {
            let members = lab.members.iter_mut().filter(|m| m.tier == tier && m.starts_with_lab);
            try_join_all(members.map(async |member| {
                // Servers start together, so a member of an ensemble can count on its majority.
                member.start(complete || tier == Tier::Server, &lab.settings).await?;
                progress.inc(1);
                let name = member.title();
                progress.set_message(localized!("{name} 已启动", "{name} is up"));
                Ok(())
            }))
            .await?;
        }
        if let Some(of) = lab.replica_pair.clone() {
            let (links, console) = (lab.links_to_main(), lab.settings.console.clone());
            lab.follower_tasks.spawn(sentinel::follow_failovers(of, links, console));
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
