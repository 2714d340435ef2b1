//! A double barrier's member: an ephemeral node, from the request that makes it to the answer that says it is gone.
//!
//! Its name is a uuid of its own, so that one whose answer was lost can be asked for again: a node of that name is
//! ours. Its version is 0 until the barrier opens and marks it as counted.
//!
//! Next to read: `shared_count.rs`.

use super::{
    insist, over,
    request::{erase, parents},
};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error};

const MEMBER: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());

/// A member that is, or may be, on the server. Dropping it deletes it in the background.
pub(super) struct Member {
    pub(super) client: Client,
    pub(super) path: String,
    /// Whether it may be on the server.
    pub(super) there: bool,
    tasks: TaskTracker,
}

impl Member {
    /// A member in the session of `client`, not yet made.
    pub(super) fn new(client: Client, path: String, tasks: &TaskTracker) -> Self {
        Self { client, path, tasks: tasks.clone(), there: false }
    }

    /// Makes it, once, whatever becomes of the connection.
    ///
    /// # Errors
    ///
    /// What the server said, or that the session is over.
    pub(super) async fn create(&mut self) -> Result<(), Error> {
        self.there = true;
        loop {
            match insist(|| self.client.create(&self.path, &[], &MEMBER)).await {
                // Nobody else has this uuid: the answer was lost.
                Ok(_) | Err(Error::NodeExists) => return Ok(()),
                Err(Error::NoNode) => parents(&self.client, &self.path).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes it back, unless it was counted; whether it was.
    ///
    /// # Errors
    ///
    /// What the server said, or that the session is over.
    pub(super) async fn withdraw(&mut self) -> Result<bool, Error> {
        match insist(|| self.client.delete(&self.path, Some(0))).await {
            Err(Error::BadVersion) => Ok(true),
            Ok(()) | Err(Error::NoNode) => {
                self.there = false;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if !self.there || Handle::try_current().is_err() {
            return;
        }
        let (client, path) = (self.client.clone(), self.path.clone());
        self.tasks.spawn(async move {
            match erase(&client, &path).await {
                Err(error) if !over(&error) => tracing::warn!(%error, path, "a member is left until its session ends"),
                _ => {}
            }
        });
    }
}
