use std::sync::mpsc;

use super::*;

fn one() -> Array {
    filled(1, 1)
}

#[test]
fn an_event_is_waited_for_no_longer_than_is_said() {
    let client = client(&[("never_at", 0), ("delay_us", 2000)]);
    let device = client.device(0).unwrap();
    let never = device.put(&one()).unwrap().ready().unwrap();
    assert!(!never.is_ready().unwrap() && never.outcome().is_none());
    for _ in 0..2 {
        assert!(!never.wait_timeout(Duration::from_millis(1)).unwrap());
    }
    let buffer = device.put(&one()).unwrap();
    assert!(buffer.ready().unwrap().wait_timeout(LONG).unwrap());
    assert!(buffer.ready().unwrap().is_ready().unwrap());
    buffer.ready().unwrap().wait().unwrap();
}

#[test]
fn callbacks_come_now_or_later_with_the_outcome() {
    for delay in [0, 2000] {
        let client = client(&[("delay_us", delay), ("event_fails_at", 1)]);
        let (tell, told) = mpsc::channel();
        for _ in 0..2 {
            let buffer = client.device(0).unwrap().put(&one()).unwrap();
            let tell = tell.clone();
            buffer.ready().unwrap().on_ready(move |outcome| tell.send(outcome).unwrap()).unwrap();
            // Dropping the buffer does not drop the event.
            if delay > 0 {
                drop(buffer);
            }
        }
        let mut outcomes: Vec<_> = (0..2).map(|_| told.recv_timeout(LONG).unwrap()).collect();
        outcomes.sort_by_key(Result::is_err);
        outcomes.remove(0).unwrap();
        let error = outcomes.remove(0).unwrap_err();
        assert!(error.to_string().ends_with("told to lose this transfer (internal, 13)"), "{error}");
    }
}

#[test]
fn a_client_may_end_in_a_callback() {
    let (tell, told) = mpsc::channel();
    let client = client(&[("delay_us", 1000)]);
    let buffer = client.device(0).unwrap().put(&one()).unwrap();
    buffer.ready().unwrap().on_ready(move |_| tell.send(()).unwrap()).unwrap();
    drop((buffer, client));
    told.recv_timeout(LONG).unwrap();
}
