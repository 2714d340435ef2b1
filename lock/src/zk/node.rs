//! A contender's node, from the request that makes it to the answer that says it is gone.
//!
//! A request can be carried out and its answer be lost: with the connection, or because nobody waits for it any
//! more. So a node is known by a uuid in its name before it is asked for ("protected creation", as in Curator), and
//! a [`Node`] that is dropped looks for it and deletes it in the background, as long as the session lives.

use super::{insist, over, unanswered};
use crate::Fence;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, SessionId};

const NODE: CreateOptions<'static> = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
const BESIDE: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
pub(super) const PARENT: CreateOptions<'static> = CreateMode::Container.with_acls(Acls::anyone_all());

/// A node that is, or may be, on the server. Dropping it deletes it in the background.
#[derive(Debug)]
pub(super) struct Node {
    entry: Entry,
    tasks: TaskTracker,
    gone: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    client: Client,
    directory: String,
    /// `_c_<uuid>-lock-`: the server appends the sequence.
    prefix: String,
    /// The prefix is all of the name: the server appends nothing.
    whole: bool,
    /// Not known before an answer has said it.
    name: Option<String>,
}

impl Node {
    /// A node in the session of `client`, not yet made.
    pub(super) fn new(client: Client, directory: &str, marker: &str, tasks: &TaskTracker) -> Self {
        let prefix = format!("_c_{}-{marker}", Uuid::new_v4());
        let entry = Entry { client, directory: directory.to_owned(), prefix, whole: false, name: None };
        Self { entry, tasks: tasks.clone(), gone: true }
    }

    /// A node in the session of `self` and at its place in the order: with its sequence, and another marker.
    pub(super) fn beside(&self, marker: &str) -> Self {
        let sequence = self.name().strip_prefix(&self.entry.prefix).unwrap_or_default();
        let marker = format!("{marker}{sequence}");
        let mut node = Self::new(self.entry.client.clone(), &self.entry.directory, &marker, &self.tasks);
        node.entry.whole = true;
        node
    }

    /// Makes it, once, whatever becomes of the connection.
    ///
    /// # Errors
    ///
    /// What the server said, or that the session is over. A lost answer is not an error: it is looked for.
    pub(super) async fn create(&mut self) -> Result<Fence, Error> {
        self.gone = false;
        loop {
            let Entry { client, directory, prefix, whole, .. } = &self.entry;
            let options = if *whole { &BESIDE } else { &NODE };
            match client.create(&format!("{directory}/{prefix}"), &[], options).await {
                Ok((stat, sequence)) => {
                    self.entry.name = Some(if *whole { prefix.clone() } else { format!("{prefix}{sequence}") });
                    return Ok(fence(stat.czxid));
                }
                Err(Error::NoNode) => insist(|| client.mkdir(directory, &PARENT)).await?,
                Err(error) if unanswered(&error) => {
                    if let Some((name, fence)) = self.entry.find().await? {
                        self.entry.name = Some(name);
                        return Ok(fence);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes it; `false` where it was gone already.
    ///
    /// # Errors
    ///
    /// What the server said, or that the session is over.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the node afterwards deletes it in the background.
    pub(super) async fn delete(&mut self) -> Result<bool, Error> {
        let deleted = self.entry.delete().await;
        self.gone = true;
        deleted
    }

    pub(super) fn client(&self) -> &Client {
        &self.entry.client
    }

    pub(super) fn session(&self) -> SessionId {
        self.entry.client.session_id()
    }

    /// Where it is, once that is known.
    pub(super) fn path(&self) -> String {
        self.entry.path(self.name())
    }

    /// The name within its directory, once it is known.
    pub(super) fn name(&self) -> &str {
        self.entry.name.as_deref().unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.gone || Handle::try_current().is_err() {
            return;
        }
        let entry = self.entry.clone();
        self.tasks.spawn(async move {
            match entry.delete().await {
                Err(error) if !over(&error) => tracing::warn!(%error, ?entry, "a node is left until its session ends"),
                _ => {}
            }
        });
    }
}

impl Entry {
    /// Looks for the node by its uuid. Requests of one session are carried out in order, so a creation that was
    /// sent before has been done, or never will be; `sync` makes that true across servers.
    async fn find(&self) -> Result<Option<(String, Fence)>, Error> {
        let listed = insist(|| async {
            self.client.sync(&self.directory).await?;
            self.client.list_children(&self.directory).await
        });
        let children = match listed.await {
            Err(Error::NoNode) => return Ok(None),
            children => children?,
        };
        let Some(name) = children.into_iter().find(|child| child.starts_with(&self.prefix)) else {
            return Ok(None);
        };
        let stat = insist(|| self.client.check_stat(&self.path(&name))).await?;
        Ok(stat.map(|stat| (name, fence(stat.czxid))))
    }

    async fn delete(&self) -> Result<bool, Error> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => match self.find().await? {
                Some((name, _)) => name,
                None => return Ok(false),
            },
        };
        let path = self.path(&name);
        let mut asked_before = false;
        loop {
            match self.client.delete(&path, None).await {
                Ok(()) => return Ok(true),
                Err(Error::NoNode) => return Ok(asked_before),
                Err(error) if unanswered(&error) => asked_before = true,
                Err(error) => return Err(error),
            }
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }
}

/// The zxid of the creation grows with every change on the server: also when the directory, and with it the
/// sequence, begins anew.
fn fence(czxid: i64) -> Fence {
    Fence(czxid.cast_unsigned())
}
