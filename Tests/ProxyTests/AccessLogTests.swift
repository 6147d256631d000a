// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignEvents
import Glibc
import NIOCore
import Testing
import CountersignUpstream

@testable import CountersignProxy

@Suite struct AccessLogTests {
    // date -u -d @1700000000 and so on.
    @Test(arguments: [
        (Int64(0), Int64(0), "1970-01-01T00:00:00.000Z"), (951_782_400, 7, "2000-02-29T00:00:00.007Z"),
        (1_700_000_000, 45, "2023-11-14T22:13:20.045Z"), (2_147_483_648, 999, "2038-01-19T03:14:08.999Z"),
    ]) func theTimeIsRFC3339(_ seconds: Int64, _ milliseconds: Int64, _ text: String) {
        #expect(AccessLog.timestamp((seconds, milliseconds)) == text)
    }

    @Test func aLineIsOneJSONObjectAndTheFileIsPrivate() throws {
        let path = "/tmp/countersign-access-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).log"
        defer { unlink(path) }
        let log = try AccessLog(path: path) { _ in }
        var outcome = AccessLog.Outcome()
        outcome.status = 200
        let entry = AccessLog.Entry(
            startedAt: (0, 1), id: 1, client: ClientProcess(uid: 7, pid: 8), method: "G\"T",
            site: RequestSite("https://a.example:443"), decision: .intercept, outcome: outcome, durationMilliseconds: -5
        )
        log.write(entry)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = fread(&bytes, 1, bytes.count, file)
        #expect(
            String(decoding: bytes[..<count], as: UTF8.self)
                == #"{"time":"1970-01-01T00:00:00.001Z","id":1,"pid":8,"uid":7,"#
                + #""method":"G\"T","site":"https://a.example:443","decision":"intercept","rounds":0,"status":200,"#
                + #""bytes":0,"ms":0}"# + "\n")
    }
}
