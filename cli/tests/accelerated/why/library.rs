// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons that the library and the monitor decide on.

use super::Scene;
use crate::harness::{Mode, Node};

/// The programs, and the reasons for their connections.
const REASONS: [(&str, &str); 27] = [
    ("young", "Young"),
    ("leaving", "Leaving"),
    ("urgent", "Urgent"),
    ("urgent before it leaves", "Urgent"),
    ("shared", "Shared"),
    ("standard stream", "Stdio"),
    ("stream of the library", "Stdio"),
    ("past the library", "PastLibrary"),
    ("with descriptors", "Ancillary"),
    ("with credentials", "Ancillary"),
    ("in a set that is passed", "ForeignSet"),
    ("confined", "Confined"),
    ("confined before", "Confined"),
    ("with ring", "IoUring"),
    ("with ring later", "IoUring"),
    ("half shut", "HalfShut"),
    ("spliced", "Spliced"),
    ("low water", "LowWater"),
    ("paced", "Option"),
    ("handed on", "HandedOn"),
    ("peer away", "PeerAway"),
    ("uncounted", "Uncounted"),
    ("same process", "SameProcess"),
    ("elsewhere", "PeerElsewhere"),
    ("other namespace", "Namespace"),
    ("plain peer", "PeerPlain"),
    ("accelerated", ""),
];

#[test]
fn each_reason_is_told_by_its_name() {
    let (node, _monitor) = Node::new();
    for (scene, reason) in REASONS {
        let Some(scene) = Scene::new(&node, Mode::Accelerated, &[scene]) else { continue };
        match reason {
            "" => _ = scene.comes_to("accelerated", |reported| reported["state"] == "accelerated"),
            _ => _ = scene.is_for(reason),
        }
    }
}

#[test]
fn what_the_peer_lacks_is_told() {
    let (node, _monitor) = Node::new();
    let Some(scene) = Scene::new(&node, Mode::Accelerated, &["plain peer"]) else { return };
    let reported = scene.is_for("PeerPlain");
    assert!(reported.contains("is not preloaded: start it with"), "{reported}");
}

#[test]
fn rules_are_told_for_what_is_new_and_what_was_recalled() {
    let (node, _monitor) = Node::new();
    let port = crate::harness::free_port().to_string();
    let Some(scene) = Scene::new(&node, Mode::Accelerated, &["of port", &port]) else { return };
    scene.comes_to("accelerated", |reported| reported["state"] == "accelerated");
    node.ask(&["sockets", "policy", "deny", "port", &port, "--json"]).expect("it does");
    node.ask(&["sockets", "recall", "--wait", "10", "--json"]).expect("it does");
    scene.is_for("Recalled");
    drop(scene);
    let Some(scene) = Scene::new(&node, Mode::Accelerated, &["of port", &port]) else { return };
    scene.is_for("Policy");
}
