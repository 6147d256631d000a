// SPDX-License-Identifier: Apache-2.0

import CMeter

/// An operation to measure repeatedly.
struct Benchmark {
    /// How the allocations are compared with the threshold.
    enum Hold: String {
        /// They are the same every time, with the same compiler.
        case exactly = "="
        /// They include OpenSSL's, which vary with its version and with random numbers.
        case atMost = "<="
    }

    let name: String
    let hold: Hold
    let operation: () throws -> Void

    init(_ name: String, _ hold: Hold = .exactly, _ operation: @escaping () throws -> Void) {
        self.name = name
        self.hold = hold
        self.operation = operation
    }
}

/// Benchmarks with a common set-up, which runs only if one of them is selected.
struct BenchmarkGroup: Sendable {
    /// The common beginning of their names.
    let prefix: String
    let make: @Sendable () throws -> [Benchmark]
}

/// Keeps the optimiser from removing the computation of `value`.
@inline(never)
func keep<Value>(_ value: borrowing Value) {
    withUnsafePointer(to: value) { meter_keep($0) }
}

/// An operation to be measured does not work as expected.
struct SetUpFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The value, or a thrown failure with this description.
func require<Value>(_ value: Value?, _ description: String) throws -> Value {
    guard let value else { throw SetUpFailure(description) }
    return value
}
