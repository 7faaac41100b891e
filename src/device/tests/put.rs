use super::*;
use crate::{Buffer, Checkpoint, Executor};

fn numbers(put: impl Iterator<Item = crate::Result<DeviceBatch>>) -> Vec<i64> {
    put.map(|batch| number(&batch.unwrap()).unwrap()).collect()
}

#[test]
fn batches_come_in_order_whatever_the_depth() {
    let expected: Vec<i64> = (0..50).collect();
    for client in [client(&[]), client(&[("delay_us", 300)])].iter().chain(&real_clients()) {
        for (depth, staging) in [(1, Staging::Always), (3, Staging::Always), (3, Staging::WhereNeeded)] {
            for executor in [Executor::Inline, Executor::Threads(2)] {
                let loader = batches(50, 8).loader().executor(executor).build().unwrap();
                let options = PutOptions::default().depth(depth).staging(staging);
                assert_eq!(numbers(DevicePut::new(loader, device_0(client), options).unwrap()), expected);
            }
        }
    }
}

/// Batches in transfer when the state is taken are sent again. The state equals the state of the pipeline without
/// devices.
#[test]
fn a_state_counts_what_was_handed_out() {
    for client in [client(&[("delay_us", 300)])].iter().chain(&real_clients()) {
        let options = || PutOptions::default().depth(4);
        let mut put = DevicePut::new(loader(batches(20, 8)), device_0(client), options()).unwrap();
        assert_eq!(put.state().unwrap().delivered, 0);
        assert_eq!(numbers(put.by_ref().take(7)), (0..7).collect::<Vec<_>>());
        let json = put.state().unwrap().to_json();
        drop(put);
        let checkpoint = || Checkpoint::from_json(&json).unwrap();
        let plain = batches(20, 8).loader().resume(checkpoint()).build().unwrap();
        assert_eq!((plain.delivered(), plain.state().unwrap().to_json() == json), (7, true));
        assert_eq!(plain.count(), 13);
        let resumed = batches(20, 8).loader().threads(2).resume(checkpoint()).build().unwrap();
        let mut resumed = DevicePut::new(resumed, device_0(client), options()).unwrap();
        let first = resumed.next().unwrap().unwrap();
        assert_eq!((first.index(), number(&first)), (7, Some(7)));
        assert_eq!(numbers(resumed.by_ref()), (8..20).collect::<Vec<_>>());
        assert_eq!(resumed.delivered(), 20);
    }
}

#[test]
fn a_batch_is_handed_out_before_it_is_there() {
    let client = client(&[("never_from", 0)]);
    let options = PutOptions::default().depth(2).slots(10).staging(Staging::Always);
    let mut put = DevicePut::new(loader(batches(9, 2)), device_0(&client), options).unwrap();
    for index in 0..5 {
        let batch = put.next().unwrap().unwrap();
        assert_eq!(batch.index(), index);
        assert!(batch.events().all(|event| !event.is_ready().unwrap()));
        // Two batches are in transfer, including this batch.
        assert_eq!(put.stats().batches, (index + 2).min(9));
    }
}

#[test]
fn rows_are_split_over_devices_and_copies_go_to_all() {
    let sharded = |client: &Client, devices: usize| {
        let devices = &client.devices()[..devices];
        let rows = || {
            let column = |width: usize| {
                let mut array = Array::builder(DType::U8, &[8, width]).unwrap();
                array.bytes_mut().iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
                array.freeze()
            };
            let batch = Element::new().with("odd", column(5)).with("even", Element::new().with("w", column(64)));
            Range::new(0, 3).map(move |_| batch.clone()).to_iter().boxed()
        };
        for (placement, parts) in
            [(Placement::rows(devices).unwrap(), devices.len()), (Placement::copies(devices).unwrap(), 1)]
        {
            for staging in [Staging::WhereNeeded, Staging::Always] {
                let options = PutOptions::default().staging(staging);
                let mut put = DevicePut::new(loader(rows()), placement.clone(), options).unwrap();
                for batch in put.by_ref() {
                    let batch = batch.unwrap();
                    for (name, width) in [("odd", 5), ("even/w", 64)] {
                        let array = batch.array(name).unwrap();
                        assert_eq!((array.shape(), array.shards().len()), (&[8, width][..], devices.len()));
                        for (at, shard) in array.shards().iter().enumerate() {
                            assert_eq!(shard.shape(), [8 / parts, width]);
                            let first = if parts == 1 { 0 } else { at * 8 / parts * width };
                            let expected: Vec<u8> = (first..first + 8 / parts * width).map(|i| i as u8).collect();
                            assert_eq!(shard.to_array().unwrap().bytes(), expected);
                        }
                    }
                    assert!(batch.array("w").unwrap_err().to_string().contains("the batch has odd, even/w"));
                }
                // Parts of 10 bytes are not aligned for devices; parts of a row of 64 bytes are.
                let copied = match staging {
                    Staging::WhereNeeded => 8 * if parts == 1 { 0 } else { 5 },
                    _ => 8 * 69,
                };
                assert_eq!(put.stats().bytes_copied, 3 * copied);
                assert_eq!(put.stats().bytes_in_place, 3 * (8 * 69 - copied));
            }
        }
    };
    sharded(&client(&[("devices", 4)]), 4);
    for client in real_clients() {
        let devices = client.devices().len();
        sharded(&client, if devices >= 4 { 4 } else { 1 });
    }
}

/// Owned memory, such as a worker's slab, which reports when it is dropped.
#[test]
fn aligned_memory_is_sent_from_where_it_lies_and_kept_till_then() {
    struct Watched(Vec<u8>, std::sync::mpsc::Sender<()>);
    impl crate::element::Owner for Watched {
        fn bytes(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = self.1.send(());
        }
    }
    let (tell, told) = std::sync::mpsc::channel();
    let make = move |i: i64| {
        let owner = Buffer::from_owner(std::sync::Arc::new(Watched(vec![i as u8; 64 + 4096], tell.clone())));
        let start = owner.as_bytes().as_ptr().align_offset(64);
        let data = owner.slice(start..start + 4096).unwrap();
        Ok(Element::new().with("x", Array::new(DType::U8, &[4096], data)?))
    };
    let client = client(&[("never_at", 1)]);
    let ds = Range::new(0, 2).try_map(make).to_iter().boxed();
    let mut put = DevicePut::new(loader(ds), device_0(&client), PutOptions::default()).unwrap();
    assert_eq!(put.by_ref().map(Result::unwrap).count(), 2);
    assert_eq!((put.stats().bytes_in_place, put.stats().bytes_copied), (8192, 0));
    drop(put);
    // The first batch was read. The second is never reported as read, and is therefore never freed.
    assert!(told.recv_timeout(LONG).is_ok());
    assert!(told.try_recv().is_err());
}

#[test]
fn with_zero_copies_buffers_view_the_memory_for_as_long_as_they_live() {
    let real: Vec<_> = real_clients().into_iter().filter(|client| client.platform() == "cpu").collect();
    for client in [cpu_client()].iter().chain(&real) {
        let array = filled(7, 8);
        let (at, sent) = (array.bytes().as_ptr().addr(), Element::new().with("x", array));
        let ds = Range::new(0, 2).map(move |_| sent.clone()).to_iter().boxed();
        let put = DevicePut::new(loader(ds), device_0(client), PutOptions::default().zero_copy(true)).unwrap();
        let held: Vec<_> = put.map(Result::unwrap).collect();
        for batch in &held {
            assert_eq!(batch.array("x").unwrap().buffer().address().unwrap(), at);
            assert_eq!(number(batch), Some(7));
        }
        // Each batch that is held keeps its slot, and the slot is not overwritten.
        let options = PutOptions::default().zero_copy(true).staging(Staging::Always);
        let put = DevicePut::new(loader(batches(20, 8)), device_0(client), options).unwrap();
        let held: Vec<_> = put.map(Result::unwrap).collect();
        assert!(held.iter().all(|batch| number(batch) == Some(batch.index() as i64)), "{client:?}");
        // Slots start at page boundaries, unlike allocations of the plugin.
        let at = held[0].array("x").unwrap().buffer().address().unwrap();
        assert!(at.is_multiple_of(4096), "{client:?}");
    }
}

/// The stub reads only pinned memory, and destroys its client only if no memory is pinned.
#[test]
fn slots_are_pinned_where_the_plugin_can() {
    for dma in [0, 2] {
        let client = client(&[("dma", dma)]);
        let options = PutOptions::default().pinned(true);
        let put = DevicePut::new(loader(batches(20, 8)), device_0(&client), options).unwrap();
        assert_eq!(numbers(put), (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_on_its_way_may_be_left_behind() {
    for (delay, dma) in [(0, 0), (3000, 0), (3000, 1)] {
        let client = client(&[("delay_us", delay), ("dma", dma)]);
        let options = PutOptions::default().depth(5).staging(Staging::Always).pinned(dma == 1);
        let mut put = DevicePut::new(loader(batches(50, 8)), device_0(&client), options).unwrap();
        drop(put.next().unwrap().unwrap());
        drop((put, client));
    }
}

/// For all sizes, each part of each array is aligned for devices, and no parts overlap.
#[test]
fn parts_in_slots_are_aligned() {
    use crate::device::slots::SlotPool;
    use crate::device::staging::{leaves, stage};
    let client = client(&[("devices", 3)]);
    let placement = Placement::rows(&client.devices()).unwrap();
    let mut slots = SlotPool::new(2, None);
    for width in [1, 5, 64, 100] {
        let column = |name: &str, first: u8| {
            let bytes = (0..6 * width).map(|i| first.wrapping_add(i as u8)).collect::<Vec<u8>>();
            (name.to_owned(), Array::new(DType::U8, &[6, width], Buffer::from_vec(bytes)).unwrap())
        };
        let columns = [column("a", 0), column("b", 100), column("c", 200)];
        let batch = columns.iter().fold(Element::new(), |batch, (name, array)| batch.with(name, array.clone()));
        let found = leaves(&batch, &placement).unwrap();
        let staged = stage(&found, Staging::Always, &mut slots, LONG).unwrap().unwrap();
        assert_eq!(staged.copied, 18 * width);
        for ((_, array), hosts) in columns.iter().zip(&staged.hosts) {
            assert!(hosts.iter().all(|host| host.bytes().as_ptr().addr().is_multiple_of(64)));
            assert_eq!(hosts.iter().flat_map(|host| host.bytes()).copied().collect::<Vec<_>>(), array.bytes());
        }
    }
}

#[test]
fn time_spent_waiting_for_slots_is_counted() {
    let client = client(&[("delay_us", 2000)]);
    let waited = |slots: usize| {
        let options = PutOptions::default().staging(Staging::Always).slots(slots);
        let mut put = DevicePut::new(loader(batches(8, 2)), device_0(&client), options).unwrap();
        assert_eq!(put.by_ref().map(Result::unwrap).count(), 8);
        put.stats().waited
    };
    assert!(waited(1) > Duration::ZERO);
    assert_eq!(waited(8), Duration::ZERO);
}
