// SPDX-License-Identifier: Apache-2.0

import CountersignCDBus
import CountersignCryptography

/// A value of a D-Bus message (D-Bus specification, "Type System"), of the types that the services here need.
package indirect enum BusValue: Equatable {
    /// A NUL in the text ends it.
    case text(String)
    /// Must be valid: libdbus ends the process otherwise.
    case path(String)
    case bool(Bool)
    case byte(UInt8)
    /// UINT32
    case number(UInt32)
    /// INT32
    case integer(Int32)
    /// An array of bytes: always a secret here.
    case bytes(Secret)
    /// An array of elements with this signature; a dictionary's elements are ``member(_:_:)``.
    case array(of: String, [BusValue])
    case member(BusValue, BusValue)
    case structure([BusValue])
    case variant(BusValue)
    /// Of another type, which is read over.
    case other

    /// `(oayays)`
    var signature: String {
        switch self {
        case .text: "s"
        case .path: "o"
        case .bool: "b"
        case .byte: "y"
        case .number: "u"
        case .integer: "i"
        case .bytes: "ay"
        case .array(let element, _): "a\(element)"
        case .member(let key, let value): "{\(key.signature)\(value.signature)}"
        case .structure(let values): "(\(values.map(\.signature).joined()))"
        case .variant: "v"
        case .other: ""
        }
    }

    var path: String? { if case .path(let path) = self { path } else { nil } }

    var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

    var text: String? { if case .text(let text) = self { text } else { nil } }

    var number: UInt32? { if case .number(let number) = self { number } else { nil } }

    /// The paths of an array of paths.
    var paths: [String]? {
        if case .array(of: _, let values) = self { values.compactMap(\.path) } else { nil }
    }

    /// `a{ss}`
    static func dictionary(_ members: [(String, String)]) -> BusValue {
        .array(of: "{ss}", members.map { .member(.text($0.0), .text($0.1)) })
    }

    /// `as`
    package static func texts(_ texts: [String]) -> BusValue { .array(of: "s", texts.map { .text($0) }) }

    /// `a{sv}` with one member.
    package static func dictionary(_ key: String, _ value: BusValue) -> BusValue {
        .array(of: "{sv}", [.member(.text(key), .variant(value))])
    }

    // MARK: Writing

    /// Appends the value. Returns false if there is no memory, or for a value that cannot be written.
    func write(to iterator: inout csn_dbus_iterator) -> Bool {
        switch self {
        case .text(let text): return csn_dbus_write_text(&iterator, Self.code("s"), text) == 1
        case .path(let path): return csn_dbus_write_text(&iterator, Self.code("o"), path) == 1
        case .bool(let value): return Self.write("b", UInt32(value ? 1 : 0), to: &iterator)
        case .byte(let value): return Self.write("y", value, to: &iterator)
        case .number(let value): return Self.write("u", value, to: &iterator)
        case .integer(let value): return Self.write("i", value, to: &iterator)
        case .bytes(let secret):
            return Self.contain(in: &iterator, "a", "y") { inner in
                secret.withBytes { csn_dbus_write_bytes(&inner, $0.baseAddress, Int32($0.count)) == 1 }
            }
        case .array(let element, let values):
            return Self.contain(in: &iterator, "a", element) { inner in values.allSatisfy { $0.write(to: &inner) } }
        case .member(let key, let value):
            return Self.contain(in: &iterator, "e", nil) { key.write(to: &$0) && value.write(to: &$0) }
        case .structure(let values):
            return Self.contain(in: &iterator, "r", nil) { inner in values.allSatisfy { $0.write(to: &inner) } }
        case .variant(let value):
            return Self.contain(in: &iterator, "v", value.signature) { value.write(to: &$0) }
        case .other: return false
        }
    }

    private static func write(
        _ type: Unicode.Scalar, _ value: some BitwiseCopyable, to iterator: inout csn_dbus_iterator
    ) -> Bool {
        withUnsafePointer(to: value) { csn_dbus_write(&iterator, code(type), $0) == 1 }
    }

    private static func contain(
        in iterator: inout csn_dbus_iterator, _ type: Unicode.Scalar, _ signature: String?,
        _ body: (inout csn_dbus_iterator) -> Bool
    ) -> Bool {
        var inner = csn_dbus_iterator()
        guard csn_dbus_open_container(&iterator, code(type), signature, &inner) == 1 else { return false }
        let isWritten = body(&inner)
        return csn_dbus_close_container(&iterator, &inner) == 1 && isWritten
    }

    // MARK: Reading

    /// The arguments of a message. Bytes are overwritten in the message after they were read.
    static func all(in message: OpaquePointer) -> [BusValue] {
        var iterator = csn_dbus_iterator()
        guard csn_dbus_begin_reading(message, &iterator) == 1 else { return [] }
        return all(from: &iterator)
    }

    /// libdbus has checked the message, whose depth it limits to 64 containers.
    private static func all(from iterator: inout csn_dbus_iterator) -> [BusValue] {
        var values: [BusValue] = []
        while csn_dbus_type(&iterator) != 0 {
            values.append(next(from: &iterator))
            csn_dbus_advance(&iterator)
        }
        return values
    }

    private static func next(from iterator: inout csn_dbus_iterator) -> BusValue {
        let type = csn_dbus_type(&iterator)
        var inner = csn_dbus_iterator()
        switch type {
        case code("s"): return csn_dbus_read_text(&iterator).map { .text(String(cString: $0)) } ?? .other
        case code("o"): return csn_dbus_read_text(&iterator).map { .path(String(cString: $0)) } ?? .other
        case code("b"): return .bool(read(UInt32(0), from: &iterator) != 0)
        case code("y"): return .byte(read(0, from: &iterator))
        case code("u"): return .number(read(0, from: &iterator))
        case code("i"): return .integer(read(0, from: &iterator))
        case code("a"):
            let element = csn_dbus_element_type(&iterator)
            csn_dbus_enter(&iterator, &inner)
            guard element == code("y") else {
                let values = all(from: &inner)
                return .array(of: values.first?.signature ?? "", values)
            }
            var count: Int32 = 0
            let bytes = UnsafeMutableRawBufferPointer(
                start: csn_dbus_read_bytes(&inner, &count), count: Int(count))
            defer { bytes.initializeMemory(as: UInt8.self, repeating: 0) }
            return .bytes(Secret(UnsafeRawBufferPointer(bytes)))
        case code("r"), code("e"), code("v"):
            csn_dbus_enter(&iterator, &inner)
            let values = all(from: &inner)
            if type == code("r") { return .structure(values) }
            if type == code("v") { return .variant(values.first ?? .other) }
            return values.count == 2 ? .member(values[0], values[1]) : .other
        default: return .other
        }
    }

    /// `empty` gives the type.
    private static func read<Value: BitwiseCopyable>(
        _ empty: Value, from iterator: inout csn_dbus_iterator
    ) -> Value {
        var value = empty
        withUnsafeMutablePointer(to: &value) { csn_dbus_read(&iterator, $0) }
        return value
    }

    static func code(_ type: Unicode.Scalar) -> Int32 { Int32(type.value) }
}
