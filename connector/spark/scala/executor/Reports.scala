package org.apache.spark.executor.bellows

import java.io.{FileOutputStream, OutputStream}
import java.lang.management.ManagementFactory
import java.nio.charset.StandardCharsets.UTF_8
import javax.management.ObjectName

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.bellows.Json

/** What this JVM reports to its launcher: an object of JSON in each line. It may be used from any thread. */
private[bellows] final class Reports(out: OutputStream) extends Logging {
  private def line(pairs: (String, Any)*): Unit = {
    val text = Json.text(pairs: _*)
    logDebug(s"Report to the launcher: $text")
    out.synchronized {
      out.write((text + "\n").getBytes(UTF_8))
      out.flush()
    }
  }

  def ready(): Unit = line("is" -> "ready", "spark" -> SPARK_VERSION,
    "scala" -> scala.util.Properties.versionNumberString, "java" -> System.getProperty("java.version"))

  /** The JVM serves an attachment. full says that it was attached anew, which takes longer than to switch. */
  def active(attachment: Long, seconds: Double, full: Boolean): Unit =
    line("is" -> "active", "attachment" -> attachment, "seconds" -> seconds, "full" -> full)

  def parked(): Unit = line("is" -> "parked")

  /** An attachment could not be served. cause is unreachable, refused or failed. */
  def failed(attachment: Long, cause: String, error: String): Unit =
    line("is" -> "failed", "attachment" -> attachment, "cause" -> cause, "error" -> error)

  /** The application has left the JVM while it was served. */
  def left(attachment: Long, why: String): Unit = line("is" -> "left", "attachment" -> attachment, "why" -> why)

  def keeps(keys: Iterable[String]): Unit = line("is" -> "keeps", "keys" -> keys.toList)

  /** The JVM is of no more use. */
  def broken(error: String): Unit = line("is" -> "broken", "error" -> error)

  /** What grows if something leaks. */
  def audit(): Unit = {
    val memory = ManagementFactory.getMemoryMXBean
    val pools = ManagementFactory.getMemoryPoolMXBeans.iterator()
    var metaspace = 0L
    while (pools.hasNext) {
      val pool = pools.next()
      if (pool.getName == "Metaspace") metaspace = pool.getUsage.getUsed
    }
    val descriptors = ManagementFactory.getOperatingSystemMXBean match {
      case unix: com.sun.management.UnixOperatingSystemMXBean => unix.getOpenFileDescriptorCount
      case _ => -1L
    }
    line("is" -> "audit", "threads" -> ManagementFactory.getThreadMXBean.getThreadCount,
      "classes" -> ManagementFactory.getClassLoadingMXBean.getLoadedClassCount, "loaders" -> loaders,
      "metaspace_bytes" -> metaspace, "heap_bytes" -> memory.getHeapMemoryUsage.getUsed, "descriptors" -> descriptors)
  }

  /** The number of class loaders; -1 if the JVM does not say it. Most are of single methods, made by reflection. */
  private def loaders: Int =
    try {
      val text = ManagementFactory.getPlatformMBeanServer.invoke(
        new ObjectName("com.sun.management:type=DiagnosticCommand"), "vmClassloaderStats",
        Array[AnyRef](Array.empty[String]), Array(classOf[Array[String]].getName)).toString
      """Total = (\d+)""".r.findFirstMatchIn(text).map(_.group(1).toInt).getOrElse(-1)
    } catch { case _: Exception => -1 }
}

private[bellows] object Reports {
  /** Reports to the file that BELLOWS_REPORTS names. */
  def open(): Reports = new Reports(new FileOutputStream(sys.env.getOrElse("BELLOWS_REPORTS",
    throw new IllegalStateException("BELLOWS_REPORTS is not set: a launcher of bellows starts this program"))))
}
