// SPDX-License-Identifier: Apache-2.0 OR MIT
//! URLs of registries.

use freeport_kv_cluster::{RegistryUrl, open};

#[test]
fn urls_are_shown_without_their_password() {
    for (text, shown) in [
        ("file:a/b", "file:a/b"),
        ("file:/a", "file:/a"),
        ("file:///a", "file:/a"),
        ("etcd://a:1", "etcd://a:1/freeport"),
        ("etcd://me:secret@a:1,b/c/", "etcd://me@a:1,b:2379/c"),
    ] {
        let url: RegistryUrl = text.parse().expect(text);
        assert_eq!(url.to_string(), shown);
        assert!(!format!("{url:?}").contains("secret"));
    }
}

#[test]
fn wrong_urls_are_refused_with_advice() {
    for (text, reason) in [
        ("", "begins with neither"),
        ("http://a", "begins with neither"),
        ("file:", "there is no folder"),
        ("file://host/a", "there is no folder"),
        ("etcd://", "is no HOST:PORT"),
        ("etcd://a:b", "'a:b' is no HOST:PORT"),
    ] {
        let error = open(text).err().expect(text).to_string();
        assert!(error.contains(reason) && error.contains("write file:FOLDER"), "{error}");
    }
}
