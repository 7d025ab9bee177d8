package faults

import java.lang.{Long => JLong}
import java.net.URI
import java.nio.file.{Files, Paths}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

import org.apache.spark.SparkEnv
import org.apache.spark.sql.api.java.UDF2

/** Ends the JVM if there is a file, which is removed before. */
class Exit extends UDF2[String, JLong, JLong] {
  override def call(file: String, n: JLong): JLong = {
    if (Files.deleteIfExists(Paths.get(file))) System.exit(7)
    n
  }
}

/** Starts so many threads that never end. */
class Leak extends UDF2[String, JLong, JLong] {
  override def call(threads: String, n: JLong): JLong = {
    for (_ <- 1 to threads.toInt) new Thread(null, () => Faults.never(), "leak", 64 << 10).start()
    n
  }
}

/** Makes a file, and never ends, although it is interrupted. */
class Spin extends UDF2[String, JLong, JLong] {
  override def call(file: String, n: JLong): JLong = {
    Files.createFile(Paths.get(file))
    Faults.never()
    n
  }
}

/** Returns the number that the client of a file system was made with, under a key of its configuration. */
class Owner extends UDF2[String, JLong, JLong] {
  override def call(key: String, n: JLong): JLong = {
    val conf = new Configuration()
    for ((name, value) <- SparkEnv.get.conf.getAll if name.startsWith("spark.hadoop.")) {
      conf.set(name.stripPrefix("spark.hadoop."), value)
    }
    FileSystem.get(new URI("file:///"), conf).getConf.get(key).toLong
  }
}

private object Faults {
  def never(): Unit = while (true) {
    try Thread.sleep(1000)
    catch { case _: InterruptedException => }
  }
}
