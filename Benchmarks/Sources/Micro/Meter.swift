// SPDX-License-Identifier: Apache-2.0

import CMeter
import CountersignCryptography

/// The cost of one operation.
struct Figures {
    let name: String
    let hold: Benchmark.Hold
    /// Processor time of one operation in nanoseconds: the median and the minimum of the batches.
    let medianNanoseconds: Double
    let leastNanoseconds: Double
    /// User-mode instructions; nil if the machine cannot count them.
    let instructions: Double?
    /// The median, and the range over all samples.
    let allocations: Int
    let allocationBounds: ClosedRange<Int>
    let bytes: Int
    let byteBounds: ClosedRange<Int>
}

/// Measures benchmarks on the calling thread.
struct Meter {
    private static let batches = 15
    private static let batchNanoseconds = 10_000_000.0
    private static let samples = 101
    /// An operation that takes longer than this is run only `fewest` times.
    private static let longNanoseconds = 50_000_000.0
    private static let fewest = 3

    /// Negative if the machine cannot count instructions.
    private let counter = meter_open_instructions()

    var countsInstructions: Bool { counter >= 0 }

    /// Throws if allocations by Swift or OpenSSL are not counted, because every figure would then be too small.
    init() throws {
        let array = { keep([UInt8](repeating: 7, count: 1000)) }
        let secret = { keep(Secret(count: 1000) { _ in }) }
        for (what, make, count) in [("an array", array, 1), ("a secret", secret, 2)] {
            // The first call also allocates memory that later calls share.
            make()
            let made = Self.allocated(by: make)
            guard made.allocations == count, (1000...1200).contains(made.bytes) else {
                throw SetUpFailure("\(what) counts as \(made.allocations) allocations of \(made.bytes) bytes")
            }
        }
    }

    func measure(_ benchmark: Benchmark) throws -> Figures {
        let operation = benchmark.operation
        try operation()
        let once = Double(try processorTime(of: operation, times: 1))
        let isLong = once > Self.longNanoseconds
        if !isLong { _ = try processorTime(of: operation, times: Self.times(in: Self.batchNanoseconds, each: once)) }

        let (allocations, bytes) = try allocations(of: operation, samples: isLong ? Self.fewest : Self.samples)
        let each = isLong ? once : Double(try processorTime(of: operation, times: 10)) / 10
        let times = Self.times(in: Self.batchNanoseconds, each: each)
        var nanoseconds: [Double] = []
        var instructions: [Double] = []
        for _ in 0..<(isLong ? Self.fewest : Self.batches) {
            let before = countsInstructions ? meter_instructions(counter) : 0
            nanoseconds.append(Double(try processorTime(of: operation, times: times)) / Double(times))
            let after = countsInstructions ? meter_instructions(counter) : 0
            instructions.append(Double(after - before) / Double(times))
        }
        nanoseconds.sort()
        instructions.sort()
        return Figures(
            name: benchmark.name, hold: benchmark.hold, medianNanoseconds: nanoseconds[nanoseconds.count / 2],
            leastNanoseconds: nanoseconds[0],
            instructions: countsInstructions ? instructions[instructions.count / 2] : nil,
            allocations: allocations[allocations.count / 2],
            allocationBounds: allocations[0]...allocations[allocations.count - 1], bytes: bytes[bytes.count / 2],
            byteBounds: bytes[0]...bytes[bytes.count - 1])
    }

    private static func times(in nanoseconds: Double, each: Double) -> Int {
        max(1, Int(nanoseconds / max(each, 1)))
    }

    private func processorTime(of operation: () throws -> Void, times: Int) throws -> UInt64 {
        let start = meter_processor_time()
        for _ in 0..<times { try operation() }
        return meter_processor_time() - start
    }

    /// The allocations of single operations, sorted.
    private func allocations(
        of operation: () throws -> Void, samples: Int
    ) throws -> (allocations: [Int], bytes: [Int]) {
        var tallies = [(allocations: Int, bytes: Int)](repeating: (0, 0), count: samples)
        for index in 0..<samples { tallies[index] = try Self.allocated(by: operation) }
        return (tallies.map(\.allocations).sorted(), tallies.map(\.bytes).sorted())
    }

    private static func allocated<Failure: Error>(
        by operation: () throws(Failure) -> Void
    ) throws(Failure) -> (allocations: Int, bytes: Int) {
        let before = meter_allocated()
        try operation()
        let after = meter_allocated()
        return (Int(after.allocations - before.allocations), Int(after.bytes - before.bytes))
    }
}
