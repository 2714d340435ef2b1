//! Every trial of the layer, family by family.

use super::{
    family::Family,
    handles::{Fenced, Handles, Plain},
    layer, redis,
    servers::Servers,
    table::Table,
    table_lease::Leased,
    trial, zookeeper,
};
use libtest_mimic::Trial;
use std::sync::Arc;
use tokio::runtime::Handle;

pub(crate) fn all(handle: &Handle, servers: Option<&Servers>) -> Vec<Trial> {
    let at = |server: fn(&Servers) -> String| servers.map(server).unwrap_or_default();
    let redis = Arc::new(redis::Redis::at(at(Servers::redis)));
    let table = Arc::new(Table::<Leased>::at(at(Servers::mysql)));
    let mut all = on(handle, &redis);
    all.extend(on(handle, &table));
    all.extend(on(
        handle,
        &Arc::new(zookeeper::ZooKeeper::at(at(Servers::zookeeper))),
    ));
    all.extend(on(handle, &Arc::new(layer::Local)));
    all.extend(trials![
        handle,
        &redis,
        layer::a_lost_lock_ends_the_work,
        layer::a_server_that_is_down_lets_nobody_in,
        layer::a_new_name_for_each_request_is_caught,
    ]);
    all.extend(trials![handle, &table, layer::a_lost_lock_ends_the_work]);
    let fenced = Arc::new(Handles::<Fenced>::at(at(Servers::redis)));
    all.extend(trials![handle, &fenced, layer::the_work_has_its_fence]);
    let plain = Arc::new(Handles::<Plain>::at(at(Servers::redis)));
    all.extend(trials![
        handle,
        &plain,
        layer::keys_that_nobody_uses_are_dropped,
        layer::a_map_of_locks_by_key_is_caught,
    ]);
    all
}

/// What the layer does over any lock.
fn on<F: Family>(handle: &Handle, family: &Arc<F>) -> Vec<Trial> {
    trials![
        handle,
        family,
        layer::a_key_lets_one_in_at_a_time_and_keys_do_not_wait_for_each_other,
        layer::a_wait_that_is_over_is_told_with_a_time_to_come_again,
        layer::who_panics_or_hangs_up_leaves_no_lock,
    ]
}
