//! A node of our own, from the request that creates it to the answer that it is gone.
//!
//! A request can be carried out and its answer lost: with the connection, or because nobody waits any more. So the name
//! has a uuid that is known beforehand ("protected creation", as in Curator), and a [`Node`] that is dropped looks for
//! it and deletes it in the background, while the session lives. If the server refuses the deletion for ever, the node
//! stays until the session ends.
//!
//! Next to read: `session.rs`.

use super::{
    errors_to_none, is_session_over, is_unanswered,
    queue_view::{LineMember, NodePlace},
    repeat_until_answered,
    session::Session,
};
use crate::Fence;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use uuid::Uuid;
use zookeeper_client::{CreateMode, Error, MultiWriteError};

/// The first pause between attempts to delete a node while the server refuses that; each further one is twice as long.
const FIRST_DELETE_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts to delete a node: a refusal lasts until somebody changes a right.
const MAX_DELETE_PAUSE: Duration = Duration::from_secs(10);

/// The version number that matches every version.
const ANY_VERSION: i32 = -1;

/// A node that is, or may be, on the server. Dropping it deletes it in the background.
#[derive(Debug)]
pub(in crate::zk) struct Node {
    address: NodeAddress,
    may_exist: bool,
    /// This process's line, which learns from here that the node has gone.
    line: Option<LineMember>,
}

/// The session, the directory and the name of a node; of a sequential one, the name's beginning until an answer has the rest.
#[derive(Debug, Clone)]
struct NodeAddress {
    session: Arc<Session>,
    directory: String,
    /// The whole name, or the part that the server appends a number to.
    prefix: String,
    /// The whole name; of a sequential node, known only from an answer.
    name: Option<String>,
}

impl Node {
    /// A node `_c_<uuid>-<marker><number>`, not yet created.
    pub(in crate::zk) fn sequential(session: Arc<Session>, directory: &str, marker: &str) -> Self {
        Self::new(session, directory, protected_prefix(marker), None)
    }

    /// A node of this name, not yet created.
    fn exact(session: Arc<Session>, directory: &str, name: String) -> Self {
        Self::new(session, directory, name.clone(), Some(name))
    }

    /// Makes a node that is not yet created; with a `name` it is not sequential.
    fn new(session: Arc<Session>, directory: &str, prefix: String, name: Option<String>) -> Self {
        let directory = directory.to_owned();
        let address = NodeAddress { session, directory, prefix, name };
        Self { address, may_exist: false, line: None }
    }

    /// A node with a uuid for its name, not yet created.
    pub(in crate::zk) fn named_by_uuid(session: Arc<Session>, directory: &str) -> Self {
        Self::exact(session, directory, Uuid::new_v4().to_string())
    }

    /// A node of this name that anybody may have created; dropping the value deletes it.
    pub(in crate::zk) fn existing(session: Arc<Session>, directory: &str, name: &str) -> Self {
        let mut node = Self::exact(session, directory, name.to_owned());
        node.may_exist = true;
        node
    }

    /// A node with the number of `self` and another marker, not yet created.
    pub(in crate::zk) fn with_marker(&self, marker: &str) -> Self {
        let number = self.name().strip_prefix(&self.address.prefix).unwrap_or_default();
        Self::exact(self.session().clone(), &self.address.directory, protected_prefix(&format!("{marker}{number}")))
    }

    /// Creates the node exactly once, even across lost connections, and missing directories; returns its fencing token. After a
    /// lost answer the node is looked for, and made again if it is not there.
    ///
    /// # Errors
    ///
    /// The server's error, or that the session is over.
    pub(in crate::zk) async fn create(&mut self) -> Result<Fence, Error> {
        self.may_exist = true;
        loop {
            let NodeAddress { session, directory, prefix, name } = &mut self.address;
            let mode = if name.is_some() { CreateMode::Ephemeral } else { CreateMode::EphemeralSequential };
            match session.create(&format!("{directory}/{prefix}"), session.data.as_bytes(), &session.options(mode)).await {
                Ok((stat, number)) => {
                    name.get_or_insert_with(|| format!("{prefix}{number}"));
                    return Ok(fence_of_zxid(stat.czxid));
                }
                Err(Error::NoNode) => session.make_directory(directory).await?,
                // Nobody else has this uuid, so an answer was lost.
                Err(error) if is_unanswered(&error) || error == Error::NodeExists => {
                    if let Some((name, fence)) = self.address.find().await? {
                        self.address.name = Some(name);
                        return Ok(fence);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps its place in this process's line, to report there that its turn has come or that it has gone.
    pub(super) fn join_line(&mut self, line: LineMember) {
        self.line = Some(line);
    }

    /// Reports to the line that its turn has come.
    pub(super) fn report_turn(&self) {
        if let Some(line) = &self.line {
            line.report_turn();
        }
    }

    /// Deletes the node, if it has this version (`None`: any); `false` if it was gone already or never created.
    ///
    /// # Errors
    ///
    /// The server's error (`BadVersion` for another version), or that the session is over. If the node may still exist,
    /// dropping it deletes it, whatever its version.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the node deletes it in the background.
    pub(in crate::zk) async fn delete(&mut self, version: Option<i32>) -> Result<bool, Error> {
        if !self.may_exist {
            return Ok(false);
        }
        let deleted = self.address.delete(version, &mut self.line).await;
        self.may_exist = !deleted.as_ref().map_or_else(is_session_over, |_| true);
        deleted
    }

    /// Gives the node up without deleting it; returns its name.
    pub(in crate::zk) fn keep_on_server(mut self) -> String {
        self.may_exist = false;
        self.address.name.take().unwrap_or_default()
    }

    /// Notes that the node has gone, so that the drop deletes nothing.
    pub(in crate::zk) fn mark_gone(&mut self) {
        self.may_exist = false;
    }

    /// Whether the node is, or may be, on the server.
    pub(in crate::zk) fn may_exist(&self) -> bool {
        self.may_exist
    }

    pub(in crate::zk) fn session(&self) -> &Arc<Session> {
        &self.address.session
    }

    /// Returns its path, once the name is known.
    pub(in crate::zk) fn path(&self) -> String {
        self.address.path(self.name())
    }

    /// Returns its name within the directory; empty until it is known.
    pub(in crate::zk) fn name(&self) -> &str {
        self.address.name.as_deref().unwrap_or_default()
    }
}

impl Drop for Node {
    /// Deletes the node in the background if it may exist, until the session is over or the client is closed.
    fn drop(&mut self) {
        if !self.may_exist {
            return;
        }
        let (address, line) = (self.address.clone(), self.line.take());
        let end = self.address.session.end.clone();
        let deletion = async move { end.run_until_cancelled(address.delete_until_done(line)).await };
        self.address.session.tasks.spawn(deletion);
    }
}

impl NodeAddress {
    /// Looks for the node by its uuid; returns its name and fencing token, or `None`. Requests of one session are carried out
    /// in order, so an earlier creation has been done or never will be; `sync` makes that true across servers.
    async fn find(&self) -> Result<Option<(String, Fence)>, Error> {
        let listed = repeat_until_answered(|| async {
            self.session.sync(&self.directory).await?;
            self.session.list_children(&self.directory).await
        });
        let children = errors_to_none(&[Error::NoNode], listed.await)?.unwrap_or_default();
        let Some(name) = children.into_iter().find(|child| child.starts_with(&self.prefix)) else {
            return Ok(None);
        };
        let stat = repeat_until_answered(|| self.session.check_stat(&self.path(&name))).await?;
        Ok(stat.map(|stat| (name, fence_of_zxid(stat.czxid))))
    }

    /// Deletes the node, if it has this version (`None`: any), and reports to the line that it is gone; `false` if it was gone
    /// already.
    async fn delete(&self, version: Option<i32>, line: &mut Option<LineMember>) -> Result<bool, Error> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => match self.find().await? {
                Some((name, _)) => name,
                None => return Ok(false),
            },
        };
        let mut next = line.as_ref().and_then(LineMember::next_waiter);
        let mut asked_before = false;
        let deleted = loop {
            match self.delete_if_next_exists(&name, version, next.as_ref()).await {
                Ok(()) => break true,
                // The next waiter's node has gone, so the transaction was refused.
                Err(MultiWriteError::OperationFailed { index: 1, .. }) => next = None,
                Err(error) => match Error::from(error) {
                    Error::NoNode => {
                        next = None;
                        break asked_before;
                    }
                    error if is_unanswered(&error) => asked_before = true,
                    error => return Err(error),
                },
            }
        };
        if let Some(line) = line.take() {
            line.report_gone(next);
        }
        Ok(deleted)
    }

    /// Deletes the node, on condition that the node of the `next` waiter is there, in one transaction; without a `next`, in any
    /// case.
    async fn delete_if_next_exists(
        &self,
        name: &str,
        version: Option<i32>,
        next: Option<&NodePlace>,
    ) -> Result<(), MultiWriteError> {
        let path = self.path(name);
        let Some(next) = next else {
            return Ok(self.session.delete(&path, version).await?);
        };
        let mut both = self.session.new_multi_writer();
        both.add_delete(&path, version)?;
        both.add_check_version(&self.path(&next.name), ANY_VERSION)?;
        both.commit().await.map(drop)
    }

    /// Deletes the node, and tries again while the server refuses, until the session is over; logs the first refusal. `line`
    /// then lets the next waiter move up.
    async fn delete_until_done(self, mut line: Option<LineMember>) {
        let mut pause = FIRST_DELETE_PAUSE;
        while let Err(error) = self.delete(None, &mut line).await
            && !is_session_over(&error)
        {
            if pause == FIRST_DELETE_PAUSE {
                tracing::warn!(%error, entry = ?(&self.directory, &self.prefix), "a node is not deleted: trying again");
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_DELETE_PAUSE);
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }
}

/// Returns the beginning of a node's name, with a fresh uuid: `_c_<uuid>-<marker>`.
fn protected_prefix(marker: &str) -> String {
    format!("_c_{}-{marker}", Uuid::new_v4())
}

/// The creation's zxid as a fencing token: it grows with every change on the server, even if the directory, and with it the
/// sequence, begins again.
fn fence_of_zxid(czxid: i64) -> Fence {
    Fence(czxid.cast_unsigned())
}
