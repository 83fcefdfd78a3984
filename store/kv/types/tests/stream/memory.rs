// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes of streams: small ones stay packed, and the account of large ones returns to its start.
