//! §3.1.2: the types of nodes, and the events of watches.

use crate::trials::{Cluster, NoVerdict, Observation, tools::wait_for_children};
use oversell::claims::words;
use zookeeper_client::{Acls, Client, CreateMode, EventType, OneshotWatcher};

experiments! {
    "3.1.2" => only_persistent_nodes_outlive_session(CreateMode::PersistentSequential), twin(CreateMode::Persistent);
    "3.1.2.watch" => watches_receive_their_events(true), twin(false);
}

/// Makes a directory for one experiment, and returns its path.
async fn make_directory(zookeeper: &Client) -> Result<String, NoVerdict> {
    let path = format!("/course-{:08x}", fastrand::u32(..));
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    zookeeper.create(&path, b"", &options).await?;
    Ok(path)
}

/// Claim: of the four types of nodes the two sequential ones get a number, and only the persistent ones outlive the session.
async fn only_persistent_nodes_outlive_session(
    on: &Cluster,
    second: CreateMode,
) -> Result<Observation, NoVerdict> {
    use CreateMode::{Ephemeral, EphemeralSequential, Persistent};
    let (stays, goes) = (on.zookeeper().await?, on.zookeeper().await?);
    let path = make_directory(&stays).await?;
    for (name, mode) in [
        ("aa", Persistent),
        ("bb", second),
        ("cc", Ephemeral),
        ("dd", EphemeralSequential),
    ] {
        let options = mode.with_acls(Acls::anyone_all());
        goes.create(&format!("{path}/{name}"), b"test", &options)
            .await?;
    }
    let before = sorted_children(&stays, &path).await?;
    // The last handle ends the session.
    drop(goes);
    wait_for_children(&stays, &path, 2).await?;
    let after = sorted_children(&stays, &path).await?;
    for name in &after {
        stays.delete(&format!("{path}/{name}"), None).await?;
    }
    stays.delete(&path, None).await?;
    let words = words!(
        "四种各建一个：{}；会话结束以后：{}。",
        "One of each: {}; after the session: {}.",
        before.join(", "),
        after.join(", ")
    );
    let holds =
        before == ["aa", "bb0000000001", "cc", "dd0000000003"] && after == ["aa", "bb0000000001"];
    Ok(Observation::holds(holds, words)
        .value("before", before)
        .value("after", after))
}

async fn sorted_children(zookeeper: &Client, path: &str) -> Result<Vec<String>, NoVerdict> {
    let mut names = zookeeper.list_children(path).await?;
    names.sort();
    Ok(names)
}

/// Claim: the watches receive NodeCreated, NodeDataChanged, NodeChildrenChanged and NodeDeleted.
async fn watches_receive_their_events(
    on: &Cluster,
    is_deleted: bool,
) -> Result<Observation, NoVerdict> {
    let (watches, changes) = (on.zookeeper().await?, on.zookeeper().await?);
    let path = make_directory(&changes).await?;
    let (node, child) = (format!("{path}/xx"), format!("{path}/xx/y"));
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let mut told = Vec::new();

    let (_, watcher) = watches.check_and_watch_stat(&node).await?;
    changes.create(&node, b"a", &options).await?;
    told.push(receive_event(watcher).await);
    let (_, _, watcher) = watches.get_and_watch_data(&node).await?;
    changes.set_data(&node, b"b", None).await?;
    told.push(receive_event(watcher).await);
    let (_, watcher) = watches.list_and_watch_children(&node).await?;
    changes.create(&child, b"c", &options).await?;
    told.push(receive_event(watcher).await);
    let (_, watcher) = watches.check_and_watch_stat(&child).await?;
    match is_deleted {
        true => changes.delete(&child, None).await?,
        false => drop(changes.set_data(&child, b"d", None).await?),
    }
    told.push(receive_event(watcher).await);

    if !is_deleted {
        changes.delete(&child, None).await?;
    }
    changes.delete(&node, None).await?;
    changes.delete(&path, None).await?;
    use EventType::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    let holds = told
        == [
            NodeCreated,
            NodeDataChanged,
            NodeChildrenChanged,
            NodeDeleted,
        ];
    let told: Vec<_> = told.iter().map(|event| format!("{event:?}")).collect();
    let words = words!("依次收到：{}。", "Told, in turn: {}.", told.join(", "));
    Ok(Observation::holds(holds, words).value("told", told))
}

/// Waits for the type of the next event.
async fn receive_event(watcher: OneshotWatcher) -> EventType {
    watcher.changed().await.event_type
}
