// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data types of a Redis server, apart from keys, commands and connections.
