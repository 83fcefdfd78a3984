// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host does with an instance, for devices that pass all of it on to something inside.

/// The methods of [`Device`](super::Device) that concern one instance, each by a call of the same
/// name. Two macros say of what: `$read` for methods that only read and `$change` for the others,
/// with the device, the method, the instance and the other arguments, as
/// `change!(self, signal, instance, signal)`.
macro_rules! host_methods {
    ($read:ident, $change:ident) => {
        fn signal(
            &mut self,
            instance: freeport_ir::InstanceId,
            signal: &freeport_ir::Bits,
        ) -> Result<freeport_ir::Bits, $crate::device::DeviceError> {
            $change!(self, signal, instance, signal)
        }

        fn call_method(
            &mut self,
            instance: freeport_ir::InstanceId,
            method: &str,
            arguments: &[freeport_ir::Bits],
        ) -> Result<Option<freeport_ir::Bits>, $crate::device::DeviceError> {
            $change!(self, call_method, instance, method, arguments)
        }

        fn read_variable(
            &self,
            instance: freeport_ir::InstanceId,
            variable: &str,
            index: u64,
        ) -> Result<freeport_ir::Bits, $crate::device::DeviceError> {
            $read!(self, read_variable, instance, variable, index)
        }

        fn write_variable(
            &mut self,
            instance: freeport_ir::InstanceId,
            variable: &str,
            index: u64,
            value: &freeport_ir::Bits,
        ) -> Result<(), $crate::device::DeviceError> {
            $change!(self, write_variable, instance, variable, index, value)
        }

        fn table_lookup(
            &self,
            instance: freeport_ir::InstanceId,
            table: &str,
            key: &freeport_ir::Bits,
        ) -> Result<Option<freeport_ir::Bits>, $crate::device::DeviceError> {
            $read!(self, table_lookup, instance, table, key)
        }

        fn table_update(
            &mut self,
            instance: freeport_ir::InstanceId,
            table: &str,
            key: &freeport_ir::Bits,
            value: &freeport_ir::Bits,
        ) -> Result<bool, $crate::device::DeviceError> {
            $change!(self, table_update, instance, table, key, value)
        }

        fn table_delete(
            &mut self,
            instance: freeport_ir::InstanceId,
            table: &str,
            key: &freeport_ir::Bits,
        ) -> Result<bool, $crate::device::DeviceError> {
            $change!(self, table_delete, instance, table, key)
        }

        fn table_entries(
            &self,
            instance: freeport_ir::InstanceId,
            table: &str,
        ) -> Result<freeport_ir::oracle::TableEntries, $crate::device::DeviceError> {
            $read!(self, table_entries, instance, table)
        }
    };
}

pub(crate) use host_methods;
