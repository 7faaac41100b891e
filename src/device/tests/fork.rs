//! A fork has no threads of the plugin: it calls no function, returns errors at once, and silently drops inherited
//! objects.

use super::*;
use crate::fork::tests::in_fork;
use crate::{ErrorKind, Result};

fn is_refused<T>(asked: Result<T>) -> bool {
    let told = |error: crate::Error| error.kind() == ErrorKind::Worker && error.to_string().contains("is a fork of it");
    asked.err().is_some_and(told)
}

/// All objects of a client, during transfers that no thread of the fork completes.
#[test]
fn what_a_plugin_made_is_an_error_in_a_fork_and_dropped_silently() {
    let client = client(&[("delay_us", 200_000), ("devices", 2)]);
    let plugin = stub::plugin(Stub::Today);
    let device = client.device(0).unwrap();
    let buffer = device.put(&filled(7, 8)).unwrap();
    let event = buffer.ready().unwrap();
    let program = client.compile("4 2").ok();
    let mut held = Some((client, device, buffer, event, program));
    let code = in_fork(|| {
        let Some((client, device, buffer, event, program)) = held.take() else { return false };
        let refused = is_refused(Plugin::load(plugin.path()))
            && is_refused(plugin.client())
            && is_refused(client.compile(""))
            && is_refused(device.put(&filled(1, 1)))
            && is_refused(buffer.ready())
            && is_refused(buffer.to_array())
            && is_refused(buffer.address())
            && is_refused(event.is_ready())
            && is_refused(event.wait())
            && is_refused(event.wait_timeout(LONG))
            && is_refused(event.on_ready(drop))
            && event.outcome().is_some_and(is_refused)
            && program.as_ref().is_none_or(|program| is_refused(program.run(&[&buffer])));
        drop((program, event, buffer, device, client));
        refused
    });
    assert_eq!(code, 0);
    let (.., buffer, event, _program) = held.unwrap();
    event.wait().unwrap();
    assert_eq!(buffer.to_array().unwrap().as_slice::<i32>().unwrap()[0], 7);
}

#[test]
fn batches_under_way_are_an_error_in_a_fork_and_arrive_in_the_parent() {
    for threads in [0, 2] {
        let client = client(&[("delay_us", 2000), ("dma", 2)]);
        let loader = batches(20, 8).loader();
        let loader = if threads == 0 { loader } else { loader.threads(threads) };
        let options = PutOptions::default().depth(3).pinned(true);
        let mut put = Some(DevicePut::new(loader.build().unwrap(), device_0(&client), options).unwrap());
        let first = put.as_mut().and_then(Iterator::next).unwrap().unwrap();
        let code = in_fork(|| {
            let Some(mut put) = put.take() else { return false };
            let refused = put.next().is_some_and(is_refused) && put.next().is_none() && is_refused(put.state());
            drop(put);
            refused && is_refused(first.wait(LONG))
        });
        assert_eq!(code, 0);
        assert_eq!(number(&first), Some(0));
        let rest: Vec<_> = put.unwrap().map(|batch| number(&batch.unwrap())).collect();
        assert_eq!(rest, (1..20).map(Some).collect::<Vec<_>>());
    }
}

/// A fork has no threads of real plugins either.
#[test]
fn real_plugins_are_refused_in_a_fork() {
    for client in real_clients() {
        let buffer = client.device(0).unwrap().put(&filled(7, 8)).unwrap();
        let mut held = Some((client, buffer));
        let code = in_fork(|| {
            let Some((client, buffer)) = held.take() else { return false };
            let refused = is_refused(client.device(0).unwrap().put(&filled(1, 1))) && is_refused(buffer.to_array());
            drop((buffer, client));
            refused
        });
        assert_eq!(code, 0);
        let (_client, buffer) = held.unwrap();
        assert_eq!(buffer.to_array().unwrap().as_slice::<i32>().unwrap()[0], 7);
    }
}
