//! What goes wrong on a device comes out at its batch, once, and ends the stream.

use super::*;
use crate::{ErrorKind, Result};

/// Batches up to the first error, which is the last thing there is.
fn until_error(put: &mut impl Iterator<Item = Result<DeviceBatch>>) -> (Vec<DeviceBatch>, crate::Error) {
    let mut good = Vec::new();
    loop {
        match put.next().expect("an error before the end") {
            Ok(batch) => good.push(batch),
            Err(error) => {
                assert!(put.next().is_none());
                return (good, error);
            }
        }
    }
}

#[test]
fn a_refused_transfer_is_an_error_at_its_batch() {
    for depth in [1, 2, 5] {
        let client = client(&[("call_fails_at", 3)]);
        let options = PutOptions::default().depth(depth);
        let mut put = DevicePut::new(loader(batches(9, 2)), device_0(&client), options).unwrap();
        let (good, error) = until_error(&mut put);
        assert_eq!(good.iter().map(number).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
        let (place, said) =
            ("stage device_put: element 3: ", "told to refuse this transfer (resource exhausted, 8), in array x");
        assert!(error.to_string().starts_with(place) && error.to_string().ends_with(said), "{error}");
        assert_eq!((error.kind(), put.delivered()), (ErrorKind::Device, 3));
        assert_eq!(put.state().unwrap().delivered, 3);
    }
}

#[test]
fn a_lost_transfer_is_an_error_at_its_batch() {
    let client = client(&[("event_fails_at", 3)]);
    let mut put = DevicePut::new(loader(batches(9, 2)), device_0(&client), PutOptions::default()).unwrap();
    let (good, error) = until_error(&mut put);
    assert_eq!((good.len(), error.element_index()), (3, Some(3)), "{error}");
    assert!(error.to_string().ends_with("told to lose this transfer (internal, 13)"), "{error}");
}

/// It was handed out before it was lost: then its buffers tell, and the stream does, with its index.
#[test]
fn a_transfer_that_is_lost_late_is_told_of_twice() {
    let client = client(&[("event_fails_at", 3), ("delay_us", 300_000)]);
    let options = PutOptions::default().depth(1).slots(100);
    let mut put = DevicePut::new(loader(batches(9, 2)), device_0(&client), options).unwrap();
    let good: Vec<_> = put.by_ref().take(4).map(Result::unwrap).collect();
    let error = good[3].wait(LONG).unwrap_err();
    assert_eq!((error.kind(), error.element_index()), (ErrorKind::Device, Some(3)), "{error}");
    assert!(good[3].array("x").unwrap().buffer().to_array().is_err());
    let (more, error) = until_error(&mut put);
    assert_eq!((more.len(), error.element_index()), (0, Some(3)), "{error}");
}

#[test]
fn a_transfer_that_never_ends_is_an_error_of_its_batch() {
    let timeout = Duration::from_millis(30);
    // One transfer that takes its slot along, and all of them, with no slot left to wait for.
    for fault in ["never_at", "never_from"] {
        let client = client(&[(fault, 3)]);
        let options = PutOptions::default().timeout(timeout).staging(Staging::Always);
        let mut put = DevicePut::new(loader(batches(1_000_000, 2)), device_0(&client), options).unwrap();
        let (good, error) = until_error(&mut put);
        assert!(good.len() >= 3);
        assert_eq!((error.kind(), error.element_index()), (ErrorKind::Device, Some(3)), "{error}");
        assert!(error.to_string().ends_with("its transfer is not over after 30ms"), "{error}");
    }
}

#[test]
fn an_error_of_the_pipeline_comes_in_its_place() {
    let ds = Range::new(0, 9).try_map(|i| match i {
        4 => Err(crate::Error::data("bad record")),
        _ => Ok(Element::new().with("x", filled(i, 2))),
    });
    let put = DevicePut::new(loader(ds.to_iter().boxed()), device_0(&client(&[])), PutOptions::default().depth(3));
    let (good, error) = until_error(&mut put.unwrap());
    assert_eq!((good.len(), error.to_string().as_str()), (4, "stage 1 map: element 4: bad record"));
}

#[test]
fn what_no_device_takes_is_named() {
    let client = client(&[("devices", 2)]);
    let error_of = |batch: Batch, placement: Placement| {
        let ds = Range::new(0, 1).map(move |_| batch.clone()).to_iter().boxed();
        until_error(&mut DevicePut::new(loader(ds), placement, PutOptions::default()).unwrap()).1.to_string()
    };
    let text = Element::new().with("meta", Element::new().with("name", "a"));
    let said = "stage device_put: element 0: meta/name is text, and only arrays go to a device";
    assert_eq!(error_of(text, device_0(&client)), said);
    let rows = || Placement::rows(&client.devices()).unwrap();
    let said = "stage device_put: element 0: x is int32[3, 64], whose rows are not to be split evenly over 2 devices";
    assert_eq!(error_of(Element::new().with("x", filled(0, 3)), rows()), said);
    assert!(error_of(Element::new().with("x", Array::scalar(1i32)), rows()).contains("x is int32[], whose rows"));
    assert!(Placement::rows(&[]).is_err());
    let other = super::client(&[]).device(0).unwrap();
    assert!(Placement::rows(&[client.device(0).unwrap(), other]).is_err());
}

#[test]
fn buffers_may_view_memory_on_a_cpu_only() {
    let options = PutOptions::default().zero_copy(true);
    let error = DevicePut::new(loader(batches(1, 1)), device_0(&client(&[])), options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("zero_copy on platform stub"), "{error}");
}
