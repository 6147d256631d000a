// SPDX-License-Identifier: Apache-2.0

import CMeter

/// One operation of a pure room that is measured again and again.
struct Benchmark {
    /// How its allocations are held by the thresholds.
    enum Hold: String {
        /// They are the same each time, wherever the same compiler built them.
        case exactly = "="
        /// OpenSSL's are among them, which differ with its version and with the numbers it draws.
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

/// Benchmarks that share what has to be made ready for them, which is done only where one of them is wanted.
struct BenchmarkGroup: Sendable {
    /// What the names of all of them begin with.
    let prefix: String
    let make: @Sendable () throws -> [Benchmark]
}

/// Has the optimiser believe that `value` is needed.
@inline(never)
func keep<Value>(_ value: borrowing Value) {
    withUnsafePointer(to: value) { meter_keep($0) }
}

/// What was to be measured did not do what it should.
struct SetUpFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// `value`, or a failure that says what is missing.
func require<Value>(_ value: Value?, _ what: String) throws -> Value {
    guard let value else { throw SetUpFailure(what) }
    return value
}
