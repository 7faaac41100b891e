//! Devices as consumers: the times of transfers and steps.

use std::time::Instant;

use super::*;
use crate::ErrorKind;
use crate::consumer::{Consumer, Handle, Metrics, Pjrt, feed};

const DELAY: Duration = Duration::from_millis(3);

/// Returns a device of the stub whose transfers take [`DELAY`].
fn slow() -> Device {
    client(&[("delay_us", DELAY.as_micros() as i64)]).device(0).unwrap()
}

#[test]
fn without_a_step_the_transfer_is_what_takes_time() {
    let timeline = feed(loader(batches(5, 2)), &mut Pjrt::new(slow()), 0, |_| 2).unwrap();
    assert_eq!(timeline.steps().len(), 5);
    for step in timeline.steps() {
        assert!(step.done - step.ready >= DELAY, "{step:?}");
        assert!(step.ready >= step.got && step.samples == 2, "{step:?}");
    }
}

#[test]
fn an_emulated_step_begins_when_its_batch_has_arrived() {
    let step_time = Duration::from_millis(2);
    for in_flight in [0, 2] {
        let mut device = Pjrt::new(slow()).emulate(step_time);
        let timeline = feed(loader(batches(5, 2)), &mut device, in_flight, |_| 2).unwrap();
        for step in timeline.steps() {
            assert!(step.ready - step.got >= DELAY, "{step:?}");
            assert!(step.done - step.ready >= step_time, "{step:?}");
        }
        // Steps run one by one on the device, independent of when the host observes them.
        let steps = timeline.steps();
        assert!(steps[4].done - steps[0].ready >= 5 * step_time, "{steps:?}");
        assert!(Metrics::of(&timeline, 1).unwrap().utilisation > 0.0);
    }
}

#[test]
fn batches_that_were_sent_ahead_are_taken_too() {
    let device = slow();
    let put = DevicePut::new(loader(batches(4, 2)), Placement::on(&device), PutOptions::default()).unwrap();
    let timeline = feed(put, &mut Pjrt::new(device), 1, |batch| batch.index()).unwrap();
    assert_eq!(timeline.steps().iter().map(|step| step.samples).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_lost_transfer_and_what_is_no_array_are_errors() {
    let device = client(&[("event_fails_at", 1)]).device(0).unwrap();
    let error = feed(loader(batches(3, 2)), &mut Pjrt::new(device.clone()), 0, |_| 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    let text = Element::new().with("words", "a b c");
    let error = Pjrt::new(device).submit(text).map(drop).unwrap_err();
    assert!(error.to_string().contains("words is") && error.kind() == ErrorKind::Data, "{error}");
}

#[test]
fn a_program_is_a_step_on_constants_and_batch() {
    for client in real_clients() {
        let program = "module @step {
            func.func public @main(%weight: tensor<2x64xi32>, %x: tensor<2x64xi32>) -> tensor<2x64xi32> {
                %sum = stablehlo.add %weight, %x : tensor<2x64xi32>
                return %sum : tensor<2x64xi32>
            }
        }";
        let device = client.device(0).unwrap();
        let weight = device.put(&filled(7, 2)).unwrap();
        let mut consumer = Pjrt::new(device).run(client.compile(program).unwrap(), vec![weight]);
        let began = Instant::now();
        let ran = consumer.submit(Element::new().with("x", filled(1, 2))).unwrap().wait().unwrap();
        assert!(began <= ran.ready_at && ran.ready_at <= ran.done_at);
        let error = consumer.submit(Element::new()).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    }
}
