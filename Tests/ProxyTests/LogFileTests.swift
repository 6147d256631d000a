// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

@testable import CountersignProxy

/// The access log's file, with a pipe or /dev/full in the place of a full disk.
@Suite struct LogFileTests {
    /// A pipe of one page, whose writing end the log has.
    private final class Pipe: Sendable {
        let log: LogFile
        let reports: Reports
        private let reader: Int32

        init(isRequired: Bool = false, endsInsideLine: Bool = false) throws {
            signal(SIGPIPE, SIG_IGN)
            var ends: [Int32] = [-1, -1]
            try #require(pipe(&ends) == 0)
            for end in ends { try #require(fcntl(end, F_SETFL, O_NONBLOCK) == 0) }
            try #require(fcntl(ends[1], 1031, Int32(4096)) == 4096)  // F_SETPIPE_SZ
            reader = ends[0]
            let reports = Reports()
            self.reports = reports
            log = LogFile(
                name: "log", descriptor: ends[1], endsInsideLine: endsInsideLine, isRequired: isRequired
            ) { reports.add($0) }
        }

        deinit { close(reader) }

        func read(upTo count: Int = 1 << 20) -> String {
            var text: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while text.count < count {
                let read = Glibc.read(reader, &buffer, min(buffer.count, count - text.count))
                guard read > 0 else { break }
                text += buffer.prefix(read)
            }
            return String(decoding: text, as: UTF8.self)
        }
    }

    private final class Reports: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private static func line(_ number: Int) -> [UInt8] {
        Array("{\"id\":\(number),\"fill\":\"\(String(repeating: "x", count: 100))\"}\n".utf8)
    }

    private static func ids(_ text: String) -> [Int] {
        text.split(separator: "\n").compactMap { line in
            line.hasPrefix("{\"id\":") && line.hasSuffix("\"}") ? Int(line.dropFirst(6).prefix { $0 != "," }) : nil
        }
    }

    @Test func lostLinesAreCountedInTheLogAndReported() throws {
        let pipe = try Pipe()
        for number in 0..<600 { pipe.log.append(Self.line(number)) }
        let first = pipe.read()
        let kept = Self.ids(first).count
        #expect(kept > 0 && Self.ids(first) == Array(0..<kept))
        #expect(pipe.reports.all.count == 1)
        #expect(
            pipe.reports.all.first
                == "cannot write the access log \"log\": Resource temporarily unavailable; "
                + "its lines are lost until it can be written")
        pipe.log.append(Self.line(600))
        let lines = pipe.read().split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("{\"time\":\"") == true)
        #expect(lines.first?.hasSuffix("\"lost\":\(600 - kept)}") == true)
        #expect(Self.ids(String(lines.last ?? "")) == [600])
        #expect(pipe.reports.all.count == 2)
        #expect(
            pipe.reports.all.last == "the access log \"log\" can be written again; \(600 - kept) of its lines are lost")
    }

    @Test func lineThatIsWrittenInPartIsCompletedBeforeTheNext() throws {
        let pipe = try Pipe()
        let long = Array("{\"id\":1,\"fill\":\"\(String(repeating: "y", count: 6000))\"}\n".utf8)
        pipe.log.append(long)
        pipe.log.append(Self.line(2))
        let start = pipe.read()
        #expect(start.utf8.count == 4096 && !start.contains("\n"))
        pipe.log.append(Self.line(3))
        let rest = pipe.read()
        #expect(start + rest.prefix { $0 != "\n" } + "\n" == String(decoding: long, as: UTF8.self))
        let lines = rest.split(separator: "\n").dropFirst()
        #expect(lines.count == 2 && lines.first?.hasSuffix("\"lost\":1}") == true)
        #expect(Self.ids(String(lines.last ?? "")) == [3])
    }

    @Test func gapIsNotedWithoutFurtherRequests() throws {
        let pipe = try Pipe()
        for number in 0..<600 { pipe.log.append(Self.line(number)) }
        let kept = Self.ids(pipe.read()).count
        pipe.log.secondPassed(now: 0)
        #expect(pipe.read().hasSuffix("\"lost\":\(600 - kept)}\n"))
    }

    @Test func manyGapsDoNotFillStandardError() throws {
        let pipe = try Pipe()
        var lost = 0
        for round in 0..<100 {
            for number in 0..<60 { pipe.log.append(Self.line(round * 60 + number)) }
            pipe.log.secondPassed(now: 0)
            for line in pipe.read().split(separator: "\n") {
                if let range = line.firstRange(of: "\"lost\":") {
                    lost += Int(line[range.upperBound...].dropLast()) ?? 0
                }
            }
        }
        #expect(lost > 1000)
        #expect(pipe.reports.all.count == 2)
    }

    @Test func onlyARequiredLogRefusesRequests() throws {
        for isRequired in [true, false] {
            let pipe = try Pipe(isRequired: isRequired)
            #expect(!pipe.log.refuses)
            for number in 0..<600 { pipe.log.append(Self.line(number)) }
            #expect(pipe.log.refuses == isRequired)
            #expect(pipe.reports.all.first?.contains("requests are refused") == isRequired)
            _ = pipe.read()
            pipe.log.secondPassed(now: 0)
            #expect(!pipe.log.refuses)
        }
    }

    @Test func theRestIsReportedAtTheEnd() throws {
        let reports = Reports()
        let name = "/dev/full"
        do {
            let log = try LogFile(path: name, isRequired: false) { reports.add($0) }
            for number in 0..<3 { log.append(Self.line(number)) }
        }
        #expect(
            reports.all == [
                "cannot write the access log \"/dev/full\": No space left on device; "
                    + "its lines are lost until it can be written",
                "3 lines of the access log \"/dev/full\" are lost",
            ])
    }

    @Test func unfinishedLineOfAnEarlierProcessIsEnded() throws {
        let path = "/tmp/countersign-log-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).log"
        defer { unlink(path) }
        let file = try #require(fopen(path, "w"))
        fputs("{\"id\":1}\n{\"id", file)
        fclose(file)
        for _ in 0..<2 {
            let log = try LogFile(path: path, isRequired: true) { _ in }
            log.append(Array("{\"id\":2}\n".utf8))
        }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let reader = open(path, O_RDONLY)
        let count = read(reader, &bytes, bytes.count)
        close(reader)
        #expect(String(decoding: bytes.prefix(count), as: UTF8.self) == "{\"id\":1}\n{\"id\n{\"id\":2}\n{\"id\":2}\n")
        var found = stat()
        // The space that was reserved for a required log is returned.
        #expect(stat(path, &found) == 0 && found.st_blocks * 512 <= 4096)
    }

    @Test func reopeningWritesToTheNewFile() throws {
        let folder = "/tmp/countersign-log-\(UInt64.random(in: 0 ... .max))"
        try #require(mkdir(folder, 0o700) == 0)
        defer {
            for name in ["log", "log.1"] { unlink("\(folder)/\(name)") }
            rmdir(folder)
        }
        func text(_ name: String) -> String {
            guard let file = fopen("\(folder)/\(name)", "r") else { return "" }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            let count = fread(&bytes, 1, bytes.count, file)
            return String(decoding: bytes.prefix(count), as: UTF8.self)
        }
        for isRequired in [false, true] {
            let log = try LogFile(path: "\(folder)/log", isRequired: isRequired) { Issue.record("\($0)") }
            log.append(Self.line(1))
            try #require(rename("\(folder)/log", "\(folder)/log.1") == 0)
            log.append(Self.line(2))
            try log.reopen()
            log.append(Self.line(3))
            #expect(Self.ids(text("log.1")) == [1, 2])
            #expect(Self.ids(text("log")) == [3])
            // If the new file cannot be opened, the log stays in the old one.
            try #require(rename("\(folder)/log", "\(folder)/log.1") == 0 && mkdir("\(folder)/log", 0o700) == 0)
            #expect(throws: AccessLogError.self) { try log.reopen() }
            log.append(Self.line(4))
            #expect(Self.ids(text("log.1")) == [3, 4])
            rmdir("\(folder)/log")
        }
    }
}
