// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The BIO between OpenSSL and the engine's memory. Reads take bytes from the input of ``TLSEngine/withInput(_:_:)``;
/// writes call ``TLSEngine/output``, except while ``TLSEngine/isHeld``. It has no socket, so
/// there is no SIGPIPE.
enum EngineBIO {
    /// `nonisolated(unsafe)` is safe here: OpenSSL only reads the method after this initialiser.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "countersign engine") else {
            return nil
        }
        BIO_meth_set_read(method) { bio, bytes, count in
            guard let bio, let bytes, let engine = EngineBIO.engine(of: bio) else { return -1 }
            BIO_clear_flags(bio, retryRead)
            let taken = engine.takeInput(UnsafeMutableRawBufferPointer(start: bytes, count: Int(max(0, count))))
            if taken > 0 { return Int32(taken) }
            BIO_set_flags(bio, retryRead)
            return -1
        }
        BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio, let bytes, count > 0, let engine = EngineBIO.engine(of: bio) else { return -1 }
            BIO_clear_flags(bio, retryWrite)
            guard !engine.isHeld else {
                BIO_set_flags(bio, retryWrite)
                return -1
            }
            engine.output(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
            return count
        }
        BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return method
    }()

    private static let retryWrite = BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY
    private static let retryRead = BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY

    /// Attaches a BIO to `ssl`, which owns it. The engine must outlive `ssl`. False if memory is exhausted.
    static func attach(to ssl: OpaquePointer, engine: TLSEngine) -> Bool {
        guard let method, let bio = BIO_new(method) else { return false }
        BIO_set_data(bio, Unmanaged.passUnretained(engine).toOpaque())
        BIO_set_init(bio, 1)
        SSL_set_bio(ssl, bio, bio)
        return true
    }

    private static func engine(of bio: OpaquePointer) -> TLSEngine? {
        BIO_get_data(bio).map { Unmanaged<TLSEngine>.fromOpaque($0).takeUnretainedValue() }
    }
}
