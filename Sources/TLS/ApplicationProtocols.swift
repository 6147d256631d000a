// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Lists of application protocols in wire format (RFC 7301 §3.1): each name after its length in one byte.
enum ApplicationProtocols {
    private static let http11 = Array("http/1.1".utf8)
    private static let h2 = Array("h2".utf8)

    /// Throws `configuration` for a name that is empty or longer than 255 bytes.
    static func encode(_ names: [String]) throws(TLSError) -> [UInt8] {
        var list: [UInt8] = []
        for name in names {
            guard let length = UInt8(exactly: name.utf8.count), length > 0 else {
                throw TLSError(
                    .configuration, "application protocol \"\(name)\" has \(name.utf8.count) bytes, not 1 to 255")
            }
            list.append(length)
            list += name.utf8
        }
        return list
    }

    /// Selects for a server, from a list that OpenSSL has validated: `h2` if the server `speaksHTTP2`, otherwise
    /// `http/1.1`. Refuses a client that offers only `h2` to a server that does not speak it; accepts one that offers
    /// something else, without a protocol.
    static func select(
        from offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32, speaksHTTP2: Bool,
        into chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ chosenLength: UnsafeMutablePointer<UInt8>?
    ) -> Int32 {
        let list = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
        var onlyH2 = !list.isEmpty
        var selected: Range<Int>?
        var position = 0
        while position < list.count {
            let start = position + 1
            let end = start + Int(list[position])
            guard end <= list.count else { return SSL_TLSEXT_ERR_ALERT_FATAL }
            let name = list[start..<end]
            if name.elementsEqual(h2) {
                if speaksHTTP2 {
                    selected = start..<end
                    break
                }
            } else {
                onlyH2 = false
                if selected == nil, name.elementsEqual(http11) { selected = start..<end }
            }
            position = end
        }
        guard let selected, let offered else {
            return onlyH2 ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK
        }
        chosen?.pointee = offered + selected.lowerBound
        chosenLength?.pointee = UInt8(selected.count)
        return SSL_TLSEXT_ERR_OK
    }
}
